/** What a server tells of a run: its events (docs/http.md), each with its number, and what becomes of the stream. */
export type ServerEvent =
  | { type: "START"; seq: number; run_id: string; path: string; call_id: string; parent_call_id: string | null; [field: string]: any }
  | { type: "DELTA"; seq: number; run_id: string; path: string; call_id: string; item: { id: string; type: string; [field: string]: any }; [field: string]: any }
  | { type: "APPROVAL"; seq: number; run_id: string; approval_id: string; [field: string]: any }
  | { type: "INTERACTION"; seq: number; run_id: string; interaction_id: string; kind: string; payload: Record<string, any>; [field: string]: any }
  | { type: "OUTPUT"; seq: number; run_id: string; path: string; status: { code: string; reason: string | null; message: string | null }; [field: string]: any }
  /** The run's process was lost, and this run went on; its events follow. */
  | { type: "continued"; run_id: string }
  /** What came before `first` is no longer kept. */
  | { type: "expired"; run_id: string; first: number | null };

export interface ReadOptions {
  signal?: AbortSignal;
  /** Told whenever the connection is lost or there again. */
  onConnection?: (connected: boolean) => void;
}

export interface StartOptions extends ReadOptions {
  /** Its name; else the one at the root. */
  runnable?: string;
  /** The run to go on with, or the turn before this one. */
  parentId?: string;
  /** Answers by id. */
  resume?: Record<string, unknown>;
  labels?: Record<string, string>;
}

export interface Page<Item> {
  items: Item[];
  /** Pass it as `after` for what follows. */
  next: string | null;
}

/** What waits for a person; `event` is the INTERACTION or APPROVAL that the run told. */
export interface PendingItem {
  id: string;
  run_id: string;
  kind: string;
  runnable: string;
  labels: Record<string, string>;
  asked_at: number;
  expires_at: number | null;
  event: any;
}

/** What became of an item: `state` is `answered`, `cancelled`, `superseded` or `expired`. */
export interface Settled {
  id: string;
  run_id: string;
  kind: string;
  runnable: string;
  state: string;
  by: { sub: string; [field: string]: any } | null;
  at: number;
  next_run_id: string | null;
  [field: string]: any;
}

export interface InboxListener {
  /** All that waits; again after each lost connection. */
  snapshot?: (items: PendingItem[]) => void;
  opened?: (item: PendingItem) => void;
  settled?: (item: Settled) => void;
  connection?: (connected: boolean) => void;
  /** The server does not want to tell; nothing more comes. */
  refused?: (problem: unknown) => void;
}

export class Problem extends Error {
  constructor(told: object);
  status: number;
  receipts: any[];
  errors: { pointer: string; message: string }[];
}

export class Unreachable extends Error {}

export class Client {
  /** `base`: where the server is, else where this module came from. `headers`: what each request carries besides. */
  constructor(options?: { base?: string | URL; headers?: () => Record<string, string> });
  start(input: Record<string, unknown>, options?: StartOptions): AsyncGenerator<ServerEvent, void>;
  events(runId: string, options?: ReadOptions & { after?: number }): AsyncGenerator<ServerEvent, void>;
  run(body: Record<string, unknown>, runnable?: string): Promise<any>;
  runs(filter?: Record<string, string | number | undefined>): Promise<Page<any>>;
  getRun(runId: string): Promise<any>;
  cancel(runId: string, reason?: string): Promise<null>;
  pending(filter?: Record<string, string | number | undefined>): Promise<Page<PendingItem>>;
  item(runId: string, id: string): Promise<any>;
  answer(runId: string, id: string, value: unknown): Promise<{ receipts: any[]; next_run_id: string | null }>;
  paramsSchema(runnable?: string): Promise<any>;
  watch(listener: InboxListener, filter?: Record<string, string | undefined>): () => void;
}
