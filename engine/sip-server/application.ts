/**
 * The door for applications of a SIP server. Call control of this process has a `SipPort`; an
 * application elsewhere sends commands and gets events, which `wire/` writes as text.
 */
import type { Flow } from './flow.ts'
import type { SipMessage } from '../../schema/sip/message.ts'
import type { SentRequest } from './transaction/machine.ts'
import type { SessionTerms } from './dialog/session-timer.ts'
import type { DialogRole } from './dialog/dialog.ts'

/** The source of a received message, or the way of a sent one. */
export type MessageFlow = Pick<Flow, 'address' | 'port'> & {
  readonly listener: Pick<
    Flow['listener'],
    'protocol' | 'address' | 'port' | 'advertisedHost' | 'advertisedPort'
  >
}

/** A message from the network, or one made here in its place. */
interface PassedMessage {
  readonly transactionId: string
  /** Empty outside dialogs. */
  readonly dialogId: string
  /** The text for the application: one line a header, completed Vias. */
  readonly text: string
  readonly message: SipMessage
  /** The text that was received. */
  readonly came: string
  readonly flow: MessageFlow
  /** Milliseconds. */
  readonly now: number
}

/** The fields of a sent request that another one of its kind needs. */
export type SentFields = Pick<SentRequest, 'method' | 'uri' | 'callId' | 'from' | 'cseq'>

interface SentMessage {
  /** The command that asked for it. */
  readonly commandId: string
  readonly text: string
  readonly flow: MessageFlow
  readonly now: number
}

export interface RequestEvent extends PassedMessage {
  readonly kind: 'request'
  /** The request is outside dialogs and no CANCEL: its application also gets the listener. */
  readonly isNew: boolean
}

export interface ResponseEvent extends PassedMessage {
  readonly kind: 'response'
}

/** A request that the stack itself has sent in a dialog of the application: BYE after a timeout. */
export interface UnsolicitedEvent {
  readonly kind: 'unsolicited'
  readonly dialogId: string
  readonly text: string
  readonly message: SipMessage
  readonly flow: MessageFlow
  readonly now: number
}

/** The application's response has left. */
export interface ResponseSentEvent extends SentMessage {
  readonly kind: 'response-sent'
  readonly transactionId: string
  readonly dialogId: string
  /** Our tag in it. */
  readonly localTag: string
}

/** The application's request has left, and its responses will carry `transactionId`. */
export interface RequestSentEvent extends SentMessage {
  readonly kind: 'request-sent'
  readonly transactionId: string
  /** Undefined for ACK and CANCEL, which have no response. */
  readonly sent: SentFields | undefined
}

/** The command cannot be performed. */
export interface RefusedEvent {
  readonly kind: 'refused'
  readonly commandId: string
  readonly problem: string
}

export interface AuthenticatedEvent {
  readonly kind: 'authenticated'
  readonly commandId: string
  /** Advertised addresses, such as `udp/192.0.2.1:5060`. */
  readonly hostports: readonly string[]
  /** Begins with `v<major>.<minor>.<patch>`. */
  readonly version: string
  /** Bound addresses. */
  readonly localHostports: readonly string[]
}

/**
 * A moment of a call, for applications that keep records. `time` in milliseconds since the epoch.
 */
export type CallDetail = {
  /** `network`: `text` was received. `application`: it was sent. */
  readonly source: 'network' | 'application'
  readonly time: number
  readonly text: string
} & (
  | { readonly kind: 'attempt' }
  | { readonly kind: 'start'; readonly role: 'uac' | 'uas' | 'proxy-uac' | 'proxy-uas' }
  | {
      readonly kind: 'stop'
      readonly reason:
        | 'call-rejected'
        | 'call-canceled'
        | 'normal-release'
        | 'session-expired'
        | 'system-initiated-termination'
    }
)

export type AppEvent =
  | RequestEvent
  | ResponseEvent
  | UnsolicitedEvent
  | ResponseSentEvent
  | RequestSentEvent
  | RefusedEvent
  | AuthenticatedEvent
  /** A final response that a forwarded request got from one of its destinations. */
  | ({ readonly kind: 'forwarded' } & SentMessage)
  /** The last word on a `proxy` command. */
  | { readonly kind: 'forwarding-done'; readonly commandId: string }
  | { readonly kind: 'ok' | 'pong'; readonly commandId: string }
  /**
   * The command breaks the protocol: wrong secret, unreadable, not allowed yet. The connection
   * ends.
   */
  | { readonly kind: 'breach'; readonly commandId: string; readonly problem: string }
  | { readonly kind: 'detail'; readonly detail: CallDetail }

/**
 * A message as an application writes it: few headers. What is the stack's own is added or replaced.
 */
export interface AppMessage {
  readonly kind: 'request' | 'response'
  readonly method: string
  readonly uri: string
  readonly status: number
  /** Empty: the usual one. */
  readonly reason: string
  readonly body: string
  get(name: string): string | undefined
  has(name: string): boolean
  list(name: string): readonly string[]
  /** All headers in order. Known names are in their canonical spelling. */
  forEach(visit: (name: string, value: string) => void): void
}

/** A request or a response that the application wants sent. */
export interface SipCommand {
  readonly kind: 'sip'
  /** Quoted to answer a request, or to cancel an INVITE; else empty. */
  readonly transactionId: string
  /** The dialog that the request belongs to; empty outside dialogs. */
  readonly dialogId: string
  /** Next hop of a request outside dialogs; empty: the request URI decides. */
  readonly routeUrl: string
  /** Undefined: it cannot be read. */
  readonly message: AppMessage | undefined
  /**
   * A final response to a request outside dialogs, whose sender has proved nothing and may have
   * written the address of another (RFC 3261 §26.3.2.4). It is sent once, without state; by UDP it
   * is at most twice as long as the request.
   */
  readonly toStranger?: boolean
}

/** Hand a received request on to other destinations, as a proxy. */
export interface ProxyCommand {
  readonly kind: 'proxy'
  readonly transactionId: string
  readonly remainInDialog: boolean
  /** Report each final response before the closing `done`. */
  readonly fullResponse: boolean
  readonly followRedirects: boolean
  readonly simultaneous: boolean
  /** Milliseconds; absent when the application gave none, or none that can be read. */
  readonly provisionalTimeoutMs: number | undefined
  readonly finalTimeoutMs: number | undefined
  /** At least one. */
  readonly destinations: readonly string[]
  /** Carries the headers to add; its URI and body mean nothing. Undefined: it cannot be read. */
  readonly message: AppMessage | undefined
}

export type ServerCommand =
  | { readonly kind: 'authenticate'; readonly secret: string; readonly tags: readonly string[] }
  /** `verb` is a SIP method in lower case, or `cdr:attempt`, `cdr:start`, `cdr:stop`. */
  | { readonly kind: 'route'; readonly verb: string }
  | { readonly kind: 'remove-route'; readonly verb: string }
  | { readonly kind: 'ping' }
  | SipCommand
  | ProxyCommand

/** `id` is what the answer quotes; empty when there was none. */
export type AppCommand =
  | { readonly id: string; readonly command: ServerCommand }
  | { readonly id: string; readonly command: undefined; readonly problem: string }

/** An application of this process that speaks the drachtio protocol. */
export interface Application {
  /** Called from the event loop, in order; never inside `ApplicationLink.send`. */
  onEvent(event: AppEvent): void
  /** The connection has ended; nothing follows on it. */
  onClose(): void
}

/** The server, as an application that speaks the drachtio protocol in this process sees it. */
export interface ApplicationLink {
  /** May be called at any time, also from `onEvent`. */
  send(command: AppCommand): void
  /** Ends the connection at once: nothing more is handed over. Safe to repeat. */
  close(): void
}

// ---- call control ----

/** The server's answer to something that call control has sent. */
export type SentReply =
  | Omit<RequestSentEvent, 'commandId'>
  | Omit<ResponseSentEvent, 'commandId'>
  | Omit<RefusedEvent, 'commandId'>

/** Sends a request or a response by a port, and gets the reply to it. */
export interface SipSender {
  replied(reply: SentReply): void
}

export type SipPortEvent = RequestEvent | ResponseEvent | UnsolicitedEvent | SentReply

/** Call control, as a port calls it. */
export interface SipPortUser {
  /** Methods in lower case; requests of others are refused by the server. */
  readonly methods: readonly string[]
  /**
   * Called from the event loop, in order; never inside a call of the port. `sender`: who has asked
   * for what this event replies to.
   */
  onEvent(event: SipPortEvent, sender: SipSender | undefined): void
  /** All dialogs and transactions are gone whose ids begin with `server`. */
  onLost(server: string): void
}

export type OpenedPort =
  /** `version` begins with `v<major>.<minor>.<patch>`. */
  | { readonly kind: 'connected'; readonly version: string }
  /** `reason` is for the operator. */
  | { readonly kind: 'refused'; readonly reason: string }

/** An address at which a server takes SIP. */
export interface SipListener {
  readonly protocol: string
  readonly host: string
  readonly port: number
}

/** How a request leaves. */
export interface RequestWay {
  /** Empty outside dialogs. */
  readonly dialogId: string
  /** The next hop of a request outside dialogs. Empty: its Route decides, or its Request-URI. */
  readonly nextHop: string
  /** The server that `serverFor` has chosen for a request outside dialogs. */
  readonly server: string
}

/** The final response of the target; 408 or 503 if there is none, as for any other request. */
export interface PingAnswer {
  readonly status: number
  readonly reason: string
}
export type PingDone = (answer: PingAnswer) => void

/**
 * SIP for call control: the server of this process, or drachtio-servers elsewhere. Call control
 * does not ask which of them it is. Where there are several servers, the ids of dialogs and
 * transactions begin with the name of theirs; the only server has the empty name.
 */
export interface SipPort {
  /** Whether 100 is passed on. Without it a node that is slow to ring looks like a dead one. */
  readonly reportsTrying: boolean
  /** Whether the server does all of RFC 4028 by itself. */
  readonly keepsSessionTimers: boolean
  /** Whether a server may become unavailable without notice while this process runs. */
  readonly isRemote: boolean
  /** Advertised addresses such as `udp/192.0.2.1:5060`, of the servers that were reached so far. */
  readonly hostPorts: readonly string[]
  /** Where SIP is served, once opened. */
  readonly listeners: readonly SipListener[]
  /** How many requests and responses wait for their reply. */
  readonly unconfirmed: number
  /** Absent: dialogs outlive this process by themselves. */
  readonly saved: SavedDialogs | undefined
  /**
   * Once. Resolves with the first available server, or when one refuses us; unavailable servers
   * are tried again and again.
   */
  open(user: SipPortUser): Promise<OpenedPort>
  /** Nothing more is handed over. Safe to repeat. */
  close(): void
  /**
   * Chooses the server for a request outside dialogs: where the phone at `nextHop` has registered;
   * else the one that the id `near` belongs to; else each in turn. Undefined: none is available.
   */
  serverFor(nextHop: string, near: string): string | undefined
  /** Sends a request other than CANCEL. False: its server is unavailable, and nothing will come. */
  request(message: AppMessage, way: RequestWay, sender: SipSender | undefined): boolean
  /** Cancels an INVITE of ours. */
  cancel(transactionId: string, message: AppMessage): void
  /**
   * Answers a request. `isToStranger`: see `SipCommand.toStranger`. False: its server is
   * unavailable, and nothing will come.
   */
  respond(
    transactionId: string,
    message: AppMessage,
    isToStranger: boolean,
    sender: SipSender | undefined,
  ): boolean
  /**
   * Status by which a request that belongs to no dialog of ours is refused at once. Undefined: it
   * is handled.
   */
  refusalOf(request: RequestEvent): number | undefined
  /** A phone has registered by this transaction from this address. */
  noteRegistered(transactionId: string, address: string, port: number): void
  /**
   * Sends one OPTIONS to an address by UDP, at a tenth of the cost of a request. `done` is called
   * once, from the event loop, also after `close`. False: nothing was sent.
   */
  ping(target: string, done: PingDone): boolean
}

/** Saves dialogs of an application as JSON values, and restores them in the next process. */
export interface SavedDialogs {
  /** Undefined: the dialog is unknown, not confirmed, or a 2xx of ours waits for its ACK. */
  saveDialog(dialogId: string): SavedDialog | undefined
  /** A received INVITE outside dialogs that has no final response yet. */
  saveInvite(transactionId: string): SavedInvite | undefined
  /**
   * To be called before the first packet. False: nothing is restored: its listener is gone, or the
   * value is damaged.
   */
  restoreDialog(saved: SavedDialog): boolean
  /**
   * Opens its server transaction again, without any response; returns the event that the
   * application got for it.
   */
  restoreInvite(saved: SavedInvite): RequestEvent | undefined
}

/** The listener is found again by protocol, address and port; a stream's connection is gone. */
export interface SavedFlow {
  readonly protocol: string
  readonly own: string
  readonly ownPort: number
  readonly address: string
  readonly port: number
  readonly returnPort?: number
  readonly hostName?: string
}

/** A field that may be absent is then empty, 0 or false: the journal has one for each leg. */
export interface SavedDialog {
  readonly role: DialogRole
  readonly callId: string
  readonly local: string
  readonly remote: string
  readonly localTag: string
  readonly remoteTag: string
  readonly localCseq: number
  readonly remoteCseq: number
  readonly contact: string
  readonly routeSet?: readonly string[] | undefined
  readonly remoteTarget: string
  readonly flow: SavedFlow
  readonly isFlowBound?: boolean | undefined
  readonly session?: SavedSession
}

export interface SavedSession extends SessionTerms {
  readonly localSdp?: string | undefined
  readonly takesUpdate: boolean
  readonly minSeconds?: number | undefined
  /** When our next refresh was due. Milliseconds by the server's clock. */
  readonly dueAt: number
}

export interface SavedInvite {
  /** Without its body. */
  readonly head: string
  readonly flow: SavedFlow
  readonly toTag: string
  /** Absent: no response has begun an early dialog. */
  readonly early?: Pick<SavedDialog, 'contact' | 'localCseq' | 'remoteCseq'>
}
