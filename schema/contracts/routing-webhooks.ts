/** Routing webhooks as the API sees them: receivers that the engine asks about calls. */
import type { HookFallback, InviteDecision } from './hooks.ts'

/** Parts of a call by which an answer may be kept. */
export const cacheKeyParts = ['from', 'to', 'source', 'carrier', 'customer'] as const

export type CacheKeyPart = (typeof cacheKeyParts)[number]

/** Counted since the start of the process, or since the webhook was changed. */
export interface RoutingWebhookStatus {
  /** Calls that it was asked about, those that were answered from memory included. */
  readonly calls: number
  /** Requests that were sent and have ended. */
  readonly requests: number
  readonly decided: number
  /** Those whose answer a call could not use, too. */
  readonly failed: number
  /** Failures without an answer in time. */
  readonly timeouts: number
  /** Failures without a request: too many at once, or it rests. */
  readonly skipped: number
  readonly cacheHits: number
  /** Time of all requests. */
  readonly totalMs: number
  /** It is not asked for a while, because it has failed repeatedly. */
  readonly isResting: boolean
  /** Milliseconds UTC. */
  readonly lastFailure: { readonly at: number; readonly reason: string } | null
}

export interface RoutingWebhookTest {
  readonly outcome: 'decided' | 'nothing' | 'failed'
  readonly decision: InviteDecision | null
  /** Why it has failed, in one line. */
  readonly reason: string | null
  readonly fallback: HookFallback
  readonly ms: number
}

export interface RoutingWebhooksPort {
  /** Reads them from the database again. Resolves when they apply; answers in memory are gone. */
  reload(): Promise<void>
  /** Undefined: it is not in use. */
  statusOf(id: number): RoutingWebhookStatus | undefined
  /**
   * Asks it now about a call that does not exist; nothing is counted or kept. Undefined: there is
   * no such webhook.
   */
  test(
    id: number,
    call: { readonly from: string; readonly to: string },
  ): Promise<RoutingWebhookTest | undefined>
}
