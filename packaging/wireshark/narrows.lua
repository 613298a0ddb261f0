-- Wireshark dissector for Narrows. It shows the rate option and the report of a designated packet (BDR) in TCP headers.
-- It also shows congestion headers, which are IPv4 options and occur only in captures of simulations.
--
-- Copy this file into Wireshark's folder of personal Lua plugins (Help, About, Folders), or run
-- tshark -X lua_script:narrows.lua -r FILE. docs/reference/wire-format.md of the project describes the formats.

local narrows = Proto("narrows", "Narrows rate control")

local fields = {
  code = ProtoField.uint16("narrows.rate.code", "Rate code", base.DEC),
  rate = ProtoField.uint64("narrows.rate", "Rate (bytes/s)", base.DEC),
  meaning = ProtoField.string("narrows.rate.meaning", "Meaning"),
  first = ProtoField.bool("narrows.report.first", "First report of the flow"),
  last = ProtoField.bool("narrows.report.last", "Last report of the flow"),
  segments = ProtoField.uint8("narrows.report.segments", "Segments of the packet"),
  age = ProtoField.uint32("narrows.report.age", "Microseconds since the previous report", base.DEC),
  kind = ProtoField.string("narrows.header", "Congestion header"),
  word = ProtoField.uint32("narrows.header.word", "Field", base.DEC_HEX),
}
narrows.fields = fields

local RATE_EXID, REPORT_EXID = 0x4E57, 0x4E44
-- Codes above LAST_RATE (65529) are not rates.
local MEANINGS = {
  [65532] = "asks for feedback, and designates packets",
  [65533] = "asks for a rate in the SYN-ACK only",
  [65534] = "not limited by the application, or asks for feedback",
  [65535] = "asks for feedback, or no rate yet",
}
local LAST_RATE = 65529

local function add_rate(tree, value)
  local code = value:uint()
  tree:add(fields.code, value)
  if code <= LAST_RATE then
    local rate = UInt64(math.floor(code / 10)) * UInt64(10 ^ (code % 10))
    tree:add(fields.rate, value, rate)
  else
    tree:add(fields.meaning, value, MEANINGS[code] or "unassigned")
  end
end

local function add_report(tree, value)
  local report = value:uint()
  tree:add(fields.first, value, bit.band(report, 0x80000000) ~= 0)
  tree:add(fields.last, value, bit.band(report, 0x40000000) ~= 0)
  tree:add(fields.segments, value, bit.band(bit.rshift(report, 22), 0xff))
  tree:add(fields.age, value, bit.band(report, 0x3fffff))
end

-- Adds a congestion header to the tree. The first four bytes of the header are option, length, kind and flags. Fields
-- of 32 bits follow.
local KINDS = { "RCP", "XCP", "BDR", "BDR member", "OBP", "custom" }
local ECHO = 0x80
local CUSTOM = 6

local function add_header(root, option)
  local kind = option(2, 1):uint()
  local name = kind >= ECHO and "echo" or KINDS[kind] or "unknown"
  if kind == CUSTOM or kind == CUSTOM + ECHO then
    name = name .. ", protocol " .. option(3, 1):uint()
  end
  local tree = root:add(narrows, option, "Narrows congestion header: " .. name)
  tree:add(fields.kind, option(2, 1), name)
  for at = 4, option:len() - 4, 4 do
    tree:add(fields.word, option(at, 4))
  end
end

local function add_option(root, option)
  if option:len() < 6 then
    return
  end
  local id = option(2, 2):uint()
  if id == RATE_EXID then
    add_rate(root:add(narrows, option, "Narrows rate option"), option(4, 2))
  elseif id == REPORT_EXID and option:len() >= 8 then
    add_report(root:add(narrows, option, "Narrows report"), option(4, 4))
  end
end

-- Calls `found(option)` for each option of the kind `wanted` in a list of options. The lists of IPv4 and TCP have the
-- same form.
local function each(range, wanted, found)
  local at = 0
  while at < range:len() do
    local kind = range(at, 1):uint()
    if kind == 0 then
      return
    elseif kind == 1 then
      at = at + 1
    else
      local length = at + 1 < range:len() and range(at + 1, 1):uint() or 0
      if length < 2 or at + length > range:len() then
        return
      end
      if kind == wanted then
        found(range(at, length))
      end
      at = at + length
    end
  end
end

-- Wireshark has no table in which dissectors for experimental options can register. This is therefore a postdissector,
-- which runs after all other dissectors.
local ip, tcp_options = Field.new("ip"), Field.new("tcp.options")
local IP_OPTION, TCP_OPTION = 158, 253
local IPV4_BYTES = 20

function narrows.dissector(_, _, root)
  local headers = { ip() }
  if headers[1] and headers[1].range:len() > IPV4_BYTES then
    each(headers[1].range(IPV4_BYTES), IP_OPTION, function(option)
      if option:len() >= 4 then
        add_header(root, option)
      end
    end)
  end
  for _, info in ipairs({ tcp_options() }) do
    each(info.range, TCP_OPTION, function(option)
      add_option(root, option)
    end)
  end
end
register_postdissector(narrows)
