/** The client of the worker. The page contains the worker's source and the module, so nothing is loaded from elsewhere. */

import type {
  CallName,
  Catalogue,
  Description,
  EngineCalls,
  Progress,
  Reply,
  Request,
  RunRequest,
} from "./protocol";

/** An error about the text of a scenario: the line that the command line prints. */
export class ScenarioError extends Error {}

export class Engine {
  private readonly worker: Worker;
  private readonly calls = new Map<number, { resolve(value: string): void; reject(error: Error): void }>();
  private next = 0;
  onProgress: (progress: Progress) => void = () => {};
  onRunError: (run: number, message: string) => void = () => {};

  private constructor(worker: Worker) {
    this.worker = worker;
  }

  /** Starts the worker and loads the module. */
  static async start(): Promise<Engine> {
    const source = embedded("engine-worker");
    // Browsers refuse to start workers from `file://` addresses, but not from blobs of the page.
    const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    const engine = new Engine(worker);
    const ready = new Promise<void>((resolve, reject) => {
      worker.onmessage = (event: MessageEvent<Reply>) => {
        if (event.data.type === "ready") resolve();
        else if (event.data.type === "failed") reject(new Error(event.data.message));
      };
      worker.onerror = (event) => reject(new Error(event.message));
    });
    const module = decodeBase64(embedded("engine-module"));
    engine.post({ type: "load", module }, [module.buffer]);
    await ready;
    worker.onmessage = (event: MessageEvent<Reply>) => engine.receive(event.data);
    return engine;
  }

  async describe(toml: string, point: number): Promise<Description> {
    return JSON.parse(await this.call("describe", toml, point)) as Description;
  }

  async catalogue(): Promise<Catalogue> {
    return JSON.parse(await this.call("catalogue")) as Catalogue;
  }

  call<Name extends CallName>(name: Name, ...args: EngineCalls[Name]): Promise<string> {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.calls.set(id, { resolve, reject });
      this.post({ type: "call", id, name, args: [...args] });
    });
  }

  /** Replaces the present run. */
  run(request: RunRequest): void {
    this.post({ type: "run", ...request });
  }

  pause(paused: boolean): void {
    this.post({ type: "pause", paused });
  }

  private post(request: Request, transfer: Transferable[] = []): void {
    this.worker.postMessage(request, transfer);
  }

  private receive(reply: Reply): void {
    switch (reply.type) {
      case "result":
        this.take(reply.id)?.resolve(reply.value);
        break;
      case "error":
        this.take(reply.id)?.reject(new ScenarioError(reply.message));
        break;
      case "run-error":
        this.onRunError(reply.run, reply.message);
        break;
      case "progress":
        this.onProgress(reply);
        break;
    }
  }

  private take(id: number) {
    const call = this.calls.get(id);
    this.calls.delete(id);
    return call;
  }
}

function embedded(id: string): string {
  return document.getElementById(id)?.textContent ?? "";
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
