/**
 * The part of drachtio-srf 5.0.29 that call control uses, as it really behaves. The library's own
 * declarations are incomplete and partly wrong, so they are not used.
 */
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type { Answer, Headers, SendOptions, SipRequest as PlainRequest } from '../signalling.ts'

export type { Answer, Headers } from '../signalling.ts'

/** A request that was received, or one that was sent (`source` tells which). */
export interface SipRequest extends PlainRequest {
  readonly source: 'network' | 'application'
  readonly stackDialogId: string | undefined
  /** Whose connection brought it, or took it away. */
  readonly agent?: Agent
  getParsedHeader(name: string): unknown
  on(event: 'cancel', listener: (cancel: { readonly headers: Headers }) => void): void
  on(event: 'response', listener: (response: SipResponse) => void): void
  /** Only for an INVITE that was sent. */
  cancel(options: { readonly headers: Headers }, callback: (error?: unknown) => void): void
}

/** An answer that was received. */
export interface SipResponse {
  /** What it answers. */
  readonly req: { readonly stackTxnId: string }
  readonly status: number
  readonly reason: string
  readonly headers: Headers
  readonly body: string | undefined
  readonly source_address: string
  readonly source_port: number
  readonly stackDialogId: string | undefined
  /** Whose connection brought it, or took it away. */
  readonly agent?: Agent
}

/** Sends the ACK of an INVITE; a no-op for other requests. */
export type Acknowledge = (options?: SendOptions) => void

export interface SrfDialog {
  readonly id: string
  /** Whose connection it is on. */
  readonly agent?: Agent
  /** Who sent its INVITE: `uac`, we. */
  readonly type: 'uac' | 'uas'
  readonly connected: boolean
  readonly res: SipResponse
  readonly sip: { readonly callId: string; readonly localTag: string; readonly remoteTag: string }
  /** What the peer was told; the library writes only the first here. */
  readonly local: { sdp: string | undefined }
  /** As it was when the dialog began: later offers and answers are not written here. */
  readonly remote: { readonly sdp: string | undefined }
  /** Called by the library for each request in the dialog. */
  handle: (request: SipRequest, answer: Answer) => void
  on(event: 'destroy', listener: (request: SipRequest, reason: string) => void): void
  /** Sends BYE; the callback comes with its answer. */
  destroy(options: { readonly headers: Headers }, callback: (error?: unknown) => void): void
  /** The callback comes for every answer, provisional ones included. */
  request(
    options: {
      readonly method: string
      readonly headers: Headers
      readonly body?: string | undefined
      /** Leaves the ACK of an INVITE without body to the caller. */
      readonly noAck?: boolean
    },
    callback: (error: unknown, response?: SipResponse, acknowledge?: Acknowledge) => void,
  ): void
}

/** What `createUAC` yields for an INVITE without body: the callee's offer, not yet acknowledged. */
export interface PendingOffer {
  readonly sdp: string
  readonly res: SipResponse
  /** Sends the ACK with our answer. Rejects when the dialog cannot be formed. */
  ack(sdp: string): Promise<SrfDialog>
  /** ACK and BYE. */
  destroy(): Promise<void>
}

/** Asked for credentials at each challenge; synchronous. An error lets the challenge through as the answer. */
export type AnswerChallenge = (
  request: SipRequest,
  response: SipResponse,
  done: (error: Error | null, username?: string, password?: string) => void,
) => void

export interface UacOptions {
  readonly method: 'INVITE'
  readonly headers: Headers
  readonly localSdp: string | undefined
  readonly noAck: boolean
  readonly auth: AnswerChallenge | undefined
  /** Next hop, where it is not what the Request-URI says. */
  readonly proxy: string | undefined
}

export interface UacCallbacks {
  readonly cbRequest: (error: unknown, request?: SipRequest) => void
  readonly cbProvisional: (response: SipResponse) => void
}

export type RequestHandler = (request: SipRequest, answer: Answer) => void

/** What the library keeps per connection; each map must be empty when nothing is going on. */
export interface ConnectionState {
  /** The server has let us in. */
  readonly ready: boolean
  readonly pendingRequests: { readonly size: number }
  readonly pendingSipRequests: { readonly size: number }
  /** By Call-ID. */
  readonly pendingNetworkInvites: { readonly size: number; keys(): Iterable<string> }
  readonly pendingAckOrPrack: { readonly size: number }
  /** Call-IDs whose challenge has been answered, until the next answer. */
  readonly pendingSipAuthRequests: { readonly size: number; delete(callId: string): boolean }
}

/** The library's connection by TCP or TLS, as far as it is reached into. */
export interface SocketWire {
  /** We want no connection any more. */
  closing?: boolean
  send(socket: Socket, message: string): string
  installListeners(socket: Socket): void
  _onConnectionGone(): void
}

export interface Agent {
  secret: string
  tags: readonly string[]
  wp: unknown
  readonly mapServer: ReadonlyMap<Socket, ConnectionState>
  /** Transactions whose challenge is being answered. */
  readonly pendingSipAuthTxnIdUpdate: {
    readonly size: number
    delete(transactionId: string): boolean
  }
  /** How it repeats a request with credentials; else with other arguments. */
  request(options: { readonly headers: Headers }, ...rest: readonly unknown[]): unknown
  emit(event: string, ...values: readonly unknown[]): void
  _onConnect(socket: Socket): void
  _onClose(socket: Socket): void
  _onMsg(socket: Socket, payload: string): void
}

export interface RequestOptions {
  readonly method: string
  readonly headers?: Headers
  readonly body?: string
  readonly stackDialogId?: string
  readonly proxy?: string
  readonly auth?: AnswerChallenge
}

export interface Srf {
  readonly _dialogs: Map<string, SrfDialog>
  readonly app: { client: Agent | undefined; _init(): Agent }
  connect(options: {
    readonly host: string
    readonly port: number
    readonly secret: string
    readonly tls?: ConnectionOptions
    readonly reconnect: { readonly retryMaxDelay: number }
  }): void
  disconnect(): void
  use(handler: RequestHandler): void
  use(method: string, handler: RequestHandler): void
  on(event: 'connect', listener: (error: unknown, hostPorts: string, version: string) => void): void
  on(event: 'error', listener: (error: unknown) => void): void
  on(event: 'close', listener: () => void): void
  createUAC(
    uri: string,
    options: UacOptions,
    callbacks: UacCallbacks,
    callback: (error: unknown, result?: SrfDialog | PendingOffer) => void,
  ): void
  createUAS(
    request: SipRequest,
    answer: Answer,
    options: { readonly localSdp: string; readonly headers: Headers },
    callback: (error: unknown, dialog?: SrfDialog) => void,
  ): void
  request(
    uri: string,
    options: RequestOptions,
    callback: (error: unknown, request?: SipRequest) => void,
  ): void
}

export interface SrfConstructor {
  new (): Srf
  readonly SipMessage: { readonly prototype: { toJSON?: () => undefined } }
}
