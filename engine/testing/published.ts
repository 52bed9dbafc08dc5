/**
 * The types of `tollgate/testing`: a test kit that shows what would become of a call with a seed
 * file and with hooks, in memory. No call is placed, no socket opened, and no thread started.
 */
import type { DecidingHook, HookDecisions, Hooks } from '../../schema/contracts/hooks.ts'

export interface TestKitOptions {
  /** A file as `tollgate seed` takes it, by its path, or its content. */
  readonly seed: string | Readonly<Record<string, unknown>>
  /**
   * A file of hooks by its path, or the hooks themselves, such as `import * as hooks from`. Absent:
   * there are none. Middleware of drachtio-srf, its other default export, is not run.
   */
  readonly hooks?: string | Hooks | { readonly default: unknown }
  /** Extensions that have a registered phone: `101@acme.example`. Others have none. */
  readonly phones?: readonly string[]
  /** Addresses of host names. Others are unknown to the kit, which asks no DNS. */
  readonly hosts?: Readonly<Record<string, readonly string[]>>
  /** Settings of `tollgate serve`, such as `{ EXIT_CODES: '00' }`. */
  readonly settings?: Readonly<Record<string, string>>
}

/** Who sends a call. `trusted`: a program of the platform (`TRUSTED_SOURCES`). */
export type TestedSource =
  | 'trusted'
  /** By name or id. */
  | { readonly carrier: string | number }
  /** `101@acme.example`, with the right password. */
  | { readonly extension: string }
  | { readonly address: string; readonly port?: number }

export interface TestedInvite {
  readonly source: TestedSource
  /** The number of the caller. Absent: that of the extension. */
  readonly from?: string
  /** A number, or `user@host`. */
  readonly to: string
  /** Further headers of the INVITE. */
  readonly headers?: Readonly<Record<string, string>>
  /**
   * The final status by which candidates answer, by their names or URIs; 0: none in time. Others
   * take the call.
   */
  readonly answers?: Readonly<Record<string, number>>
  /**
   * When the call is made: the rates of that time count, and it is `new Date()` for hooks. Absent:
   * now.
   */
  readonly at?: Date | string | number
}

export interface TestedCandidate {
  readonly kind: 'gateway' | 'node' | 'extension' | 'agent' | 'domain' | 'application'
  readonly uri: string
  /** The name of the carrier or agent, or the extension. */
  readonly name: string | null
  /** Why no INVITE is sent there, as `denial_code` of a call record; null: one may be sent. */
  readonly withheld: string | null
  /** The final status of its answer, 0 without one; null: it is not tried. */
  readonly status: number | null
}

export type TestedOutcome =
  /** With the candidate that takes the call. */
  | ({ readonly kind: 'connected' } & Pick<TestedCandidate, 'uri' | 'name'>)
  /** `code` as `denial_code` of a call record. */
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly reason: string
      readonly code: string | null
    }

export interface TestedPrice {
  /** The price of a call of one minute. */
  readonly perMinute: string
  readonly currency: string
  /** The name of the customer that pays. */
  readonly payer: string | null
}

/** How a hook was asked. */
export interface TestedHook {
  readonly hook: DecidingHook
  /** Null: it has said nothing, or has failed. */
  readonly decision: HookDecisions[DecidingHook] | null
  /** Why it has failed, or what of its decision has no effect; null: neither. */
  readonly failed: string | null
  readonly milliseconds: number
}

export interface TestedCall {
  readonly outcome: TestedOutcome
  /** The numbers in normal form, after the hook. */
  readonly from: string
  readonly to: string
  readonly direction: 'inbound' | 'outbound' | 'internal'
  readonly isEmergency: boolean
  /** Null: nobody is charged, or the call ends before its price is looked up. */
  readonly price: TestedPrice | null
  /** In the order in which they are tried. */
  readonly candidates: readonly TestedCandidate[]
  /** The Request-URI of the INVITE to the first candidate; null: none is sent. */
  readonly requestUri: string | null
  /** Headers of that INVITE by lower-case names. `localhost` is the address of Tollgate. */
  readonly headers: Readonly<Record<string, string>>
  /** The hooks that were asked, in their order. */
  readonly hooks: readonly TestedHook[]
  readonly tags: Readonly<Record<string, string>>
  /** Whether a hook has the call recorded; null: the rules of its parties say it. */
  readonly record: boolean | null
}

export interface TestKit {
  /** @throws {Error} there is no such source, or it may not call. */
  call(invite: TestedInvite): Promise<TestedCall>
  close(): void
}

/** @throws {Error} the seed, the hooks or a setting cannot be used: one line says why. */
export declare function openTestKit(options: TestKitOptions): Promise<TestKit>
