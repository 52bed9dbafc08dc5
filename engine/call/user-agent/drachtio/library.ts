/** The used part of drachtio-srf 5.0. Its own types lack most of it. */
import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'

export interface RawMessage {
  /** The whole message as the server wrote it. */
  readonly raw: string
}

export interface ServerMessage extends RawMessage {
  readonly source: 'network' | 'application'
  readonly source_address: string
  readonly source_port: number
  readonly protocol: string
  readonly stackTxnId: string
  /** Absent on a request that has just been sent. */
  readonly stackDialogId?: string
}

export interface Parts {
  readonly headers: Record<string, string>
  readonly body: string
}

/** `error` is the server's reason as text, or an error of the library. */
export type Callback<T> = (error: unknown, result?: T) => void

/** ACK of a final response, or PRACK of a reliable one. */
export type LibraryAcknowledge = (parts: Parts, done: Callback<RawMessage>) => void

export interface SrfRequest extends ServerMessage {
  on(
    event: 'response',
    listener: (response: SrfResponse, acknowledge: LibraryAcknowledge) => void,
  ): void
  on(event: 'update', listener: (request: SrfRequest, response: SrfResponse) => void): void
  on(event: 'cancel', listener: (cancel: RawMessage) => void): void
  cancel(parts: Parts, done: Callback<SrfRequest>): void
}

export interface SrfResponse extends ServerMessage {
  status: number
  reason: string
  readonly agent: {
    sendResponse(response: SrfResponse, parts: Parts, done: Callback<RawMessage>): void
  }
  /** @throws {Error} for a status that is not in its table. */
  send(status: number, reason: string, parts: Parts, done: Callback<RawMessage>): void
}

export interface Srf extends EventEmitter {
  /** `wp` is not documented: it gives access to the socket and to received messages. */
  readonly app: {
    readonly client: {
      readonly wp: EventEmitter & { send(socket: Socket, message: string): string }
    }
  }
  use(handler: (request: SrfRequest, response: SrfResponse) => void): void
  use(verb: string, handler: () => void): void
  connect(
    options: {
      readonly host: string
      readonly port: number
      readonly secret: string
      readonly tls?: ConnectionOptions
      readonly reconnect: { readonly maxAttempts: number }
    },
    connected: (
      error: unknown,
      hostPorts: string,
      version: string | null,
      localHostPorts: string | null,
    ) => void,
  ): void
  request(
    uri: string,
    request: Parts & {
      readonly method: string
      /** The next hop; empty: the request URI decides. */
      readonly proxy: string
      readonly stackDialogId: string
    },
    done: Callback<SrfRequest>,
  ): void
  disconnect(): void
}

/** Processes with a server of their own never load it. */
export async function loadLibrary(): Promise<(new () => Srf) | undefined> {
  const { default: library }: { readonly default: unknown } = await import('drachtio-srf')
  return isSrf(library) ? library : undefined
}

const isSrf = (library: unknown): library is new () => Srf => typeof library === 'function'
