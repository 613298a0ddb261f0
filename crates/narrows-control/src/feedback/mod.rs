//! How a rate travels: sixteen bits of a TCP option (BRF-5 to BRF-11).
