/**
 * Hooks: code of the operator that is asked about calls. `import type { Hooks } from 'tollgate'`
 * gives these types; a routing webhook gets and gives the same values as JSON.
 *
 * No answer makes a call free, reaches a gateway without a price, or shows the money of another:
 * what a hook chooses passes the same checks as what was dialled. Emergency calls ask no hook.
 */

/** The functions that a file of hooks may export, by name or in its default export. */
export interface Hooks {
  /** A phone has proved its password. Absent answer: it is registered. */
  readonly onRegister?: (registration: HookRegistration) => Awaitable<RegisterDecision | void>
  /** A call has arrived and its source is known; nobody has been asked to pay, or been dialled. */
  readonly onInvite?: (call: HookCall) => Awaitable<InviteDecision | void>
  /** The destinations of a call are known, the best first; none has been dialled. */
  readonly onRoute?: (route: HookRoute) => Awaitable<RouteDecision | void>
  /** A destination has not taken the call. */
  readonly onAttemptFailed?: (attempt: HookAttempt) => Awaitable<AttemptDecision | void>
  /** The call is answered. Nothing waits for this function. */
  readonly onAnswer?: (call: HookAnsweredCall) => Awaitable<void>
  /** An answered or refused call is over. Nothing waits for this function. */
  readonly onEnd?: (call: HookEndedCall) => Awaitable<void>
  /** The call's record is stored, and its payer debited. Nothing waits for this function. */
  readonly onRecord?: (record: HookRecord) => Awaitable<void>
}

type Awaitable<T> = T | Promise<T>

export type HookName = keyof Hooks

/** Hooks whose answer is waited for, at most the time limit. */
export type DecidingHook = 'onRegister' | 'onInvite' | 'onRoute' | 'onAttemptFailed'

/** Hooks that are only told what has happened. */
export type ToldHook = Exclude<HookName, DecidingHook>

/** The argument of each hook. */
export type HookArgument<H extends HookName> = Parameters<NonNullable<Hooks[H]>>[0]

/** The answers that each deciding hook may give. */
export interface HookDecisions {
  readonly onRegister: RegisterDecision
  readonly onInvite: InviteDecision
  readonly onRoute: RouteDecision
  readonly onAttemptFailed: AttemptDecision
}

/** Who sends a call or a registration. */
export interface HookSource {
  /**
   * `api`: click-to-call and test calls; `forward`: a phone has forwarded the call; `application`:
   * middleware of drachtio-srf has made it.
   */
  readonly kind:
    'carrier' | 'node' | 'extension' | 'proxy' | 'trusted' | 'api' | 'forward' | 'application'
  /** IP address; empty for `api` and `forward`. */
  readonly address: string
  /** 0 for `api` and `forward`. */
  readonly port: number
  /** Id of the carrier, node or extension. */
  readonly id: number | null
  /** Name of the carrier, or `extension@domain`. */
  readonly name: string | null
  readonly tenantId: number | null
}

export interface HookParty {
  readonly id: number
  readonly name: string
}

export interface HookCall {
  readonly callUuid: string
  readonly callId: string
  /** The simulator asks: no call follows. */
  readonly isSimulated?: true
  /** Number of the caller, in normal form. */
  readonly from: string
  readonly fromName: string | null
  /** Number or name that is called, in normal form. */
  readonly to: string
  /** Domain of the Request-URI, without port. */
  readonly domain: string
  readonly source: HookSource
  /** The payer, where the source or the caller's number already names it. */
  readonly customer?: HookParty
  /** The carrier that the call comes from. */
  readonly carrier?: HookParty
  readonly tenantId: number | null
  /**
   * The proof that Identity headers give of the caller's number. Absent: calls of its carrier are
   * not verified (`stir.verify`).
   */
  readonly verification?: 'passed' | 'failed' | 'none'
  /** How far the caller's network vouches for the number. Absent: nothing of it is proved. */
  readonly attestation?: 'A' | 'B' | 'C'
  /** Headers of the INVITE by lower-case names; several values are joined by commas. */
  readonly headers: Readonly<Record<string, string>>
}

export interface HookRefusal {
  /** From 400 to 699; not 401 or 407. One that is not registered is sent as x00 of its class. */
  readonly status: number
  /** Absent: the usual phrase of the status. At most 100 characters, without line breaks. */
  readonly reason?: string | undefined
}

/**
 * Every field may be absent; without any the call goes on as without a hook. At most one of `set`,
 * `carriers`, `extension`, `agent` and `uri`.
 */
export interface InviteDecision {
  readonly refuse?: HookRefusal | undefined
  /** Number that is called instead: rights, price and route follow from it. */
  readonly to?: string | undefined
  /** Number that is shown instead. The payer stays that of the original caller. */
  readonly from?: string | undefined
  /** Name that is shown; empty: none. At most 100 characters. */
  readonly fromName?: string | undefined
  /** Dispatcher set, by id or endpoint name. */
  readonly set?: number | string | undefined
  /**
   * Carriers by id or name, the first one first; gateways and price as always. Those without an
   * outbound route for the number are left out.
   */
  readonly carriers?: readonly (number | string)[] | undefined
  /** `101@domain`, or `101` where one domain alone can be meant. */
  readonly extension?: string | undefined
  /** AI agent, by id or name. */
  readonly agent?: number | string | undefined
  /** SIP URI outside. It is priced by the number that is called. */
  readonly uri?: string | undefined
  /** Headers of the INVITE to the called side; at most 16, of 256 characters. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Go into the record and its events; at most 16, of 128 characters. */
  readonly tags?: Readonly<Record<string, string>> | undefined
  /** Whether the call is recorded, whatever the rules say. */
  readonly record?: boolean | undefined
}

export interface HookCandidate {
  readonly kind: 'gateway' | 'node' | 'extension' | 'agent' | 'domain' | 'application'
  readonly uri: string
  /** Name of the carrier or agent. */
  readonly name: string | null
  /** Id of the carrier, node or agent. */
  readonly id: number | null
}

export interface HookRoute {
  readonly callUuid: string
  /** The simulator asks: no call follows. */
  readonly isSimulated?: true
  readonly from: string
  readonly to: string
  readonly direction: 'inbound' | 'outbound' | 'internal'
  readonly candidates: readonly HookCandidate[]
}

export interface RouteDecision {
  readonly refuse?: HookRefusal | undefined
  /** Positions in `candidates` in the order in which they are tried; others are left out. */
  readonly order?: readonly number[] | undefined
}

export interface HookAttempt {
  readonly callUuid: string
  /** The simulator asks: no call follows. */
  readonly isSimulated?: true
  readonly to: string
  readonly candidate: HookCandidate
  /** The last response; 0: none. */
  readonly status: number
  readonly reason: string
  /** Candidates that have not been tried. */
  readonly remaining: readonly HookCandidate[]
  /** Whether the next candidate is tried without a decision. */
  readonly movesOn: boolean
}

export interface AttemptDecision {
  /** True: the next candidate is tried, whatever the status; false: the caller gets the status. */
  readonly failover?: boolean | undefined
}

export interface HookRegistration {
  readonly extension: string
  readonly domain: string
  readonly tenantId: number
  readonly contact: string
  readonly userAgent: string
  readonly source: Pick<HookSource, 'address' | 'port'>
}

export interface RegisterDecision {
  readonly refuse?: HookRefusal | undefined
}

export interface HookAnsweredCall {
  readonly callUuid: string
  readonly from: string
  readonly to: string
  readonly destination: string
  /** Milliseconds UTC. */
  readonly answeredAt: number
  readonly tags: Readonly<Record<string, string>>
}

export interface HookEndedCall {
  readonly callUuid: string
  readonly from: string
  readonly to: string
  readonly disposition: string
  readonly sipCode: number
  readonly hangupBy: string
  /** Billed seconds. */
  readonly billsec: number
  readonly tags: Readonly<Record<string, string>>
}

/** The record, with the price that `GET /api/v1/reports/cdrs` shows to the platform. */
export interface HookRecord extends HookEndedCall {
  readonly customerId: number | null
  readonly tenantId: number | null
  readonly carrier: string | null
  /** Micro-units; null: the call is not charged. */
  readonly costMicros: number | null
  readonly currency: string | null
}

/** How a question to the operator's code ended. */
export type HookAnswer<D> =
  | {
      readonly kind: 'decided'
      readonly decision: D
      /** Names the file or the webhook, for trace and simulator. */
      readonly by: string
      /**
       * The tenant whose webhook has decided: it reaches its own alone. Null: the code of the
       * platform's operator.
       */
      readonly tenantId: number | null
      /** Holds where the decision names what the call cannot reach. */
      readonly fallback: HookFallback
      /** Who has decided these fields, where several have decided; of others it is `by`. */
      readonly byField?: Readonly<Record<string, string>>
    }
  | { readonly kind: 'nothing' }
  /** No answer in time, an error, or an answer that is not allowed: `fallback` holds. */
  | {
      readonly kind: 'failed'
      readonly by: string
      /** One line with file and line where they are known. */
      readonly why: string
      /** The tenant whose webhook has failed; absent: the code of the platform's operator has. */
      readonly tenantId?: number | null
      readonly fallback: HookFallback
    }

/** `refuse`: 503 with Retry-After. */
export type HookFallback = 'continue' | 'refuse'

/** The operator's code, as the engine asks it. It never throws, and answers within its limit. */
export interface HookPort {
  /** Whether there is such a hook now; without it nothing is asked, built or waited for. */
  has(hook: HookName): boolean
  ask<H extends DecidingHook>(
    hook: H,
    argument: HookArgument<H>,
  ): Promise<HookAnswer<HookDecisions[H]>>
  /** The call could not use what `by` has decided, of a real call. `why` is one sentence. */
  unusable(hook: DecidingHook, by: string, why: string): void
  /** Returns at once. What does not fit in the queue is dropped and counted. */
  tell<H extends ToldHook>(hook: H, argument: HookArgument<H>): void
}

/** Failures of one hook, or of the file or webhook itself, without a longer pause; for people. */
export interface HookTrouble {
  /** Names the file or the webhook. */
  readonly by: string
  /** Null: the file as a whole, or its thread. */
  readonly hook: HookName | null
  /** The last failure: one line, with file and line where they are known. */
  readonly message: string
  readonly file: string | null
  readonly line: number | null
  /** Failures between `firstAt` and `lastAt`, milliseconds UTC. */
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
  /** Absent: it is the file that has failed. Null: the webhook is that of the platform. */
  readonly webhook?: { readonly id: number; readonly tenantId: number | null }
}
