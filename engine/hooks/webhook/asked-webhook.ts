/** One routing webhook in use: its connections, the answers that still hold, and its figures. */
import { signatures } from '../../../schema/secrets/webhook-signature.ts'
import type {
  HookAnswer,
  HookCall,
  HookTrouble,
  InviteDecision,
} from '../../../schema/contracts/hooks.ts'
import type {
  RoutingWebhookStatus,
  RoutingWebhookTest,
} from '../../../schema/contracts/routing-webhooks.ts'
import { type Clocks, MINUTE_MS, type Schedule } from '../../../schema/clock.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type { TargetRules } from '../../../schema/net/http-target.ts'
import { checkDecision } from '../../../schema/rules/hook-decisions.ts'
import { AnswerCache, cacheKeyOf, type KeptAnswer } from './answer-cache.ts'
import { questionOf } from './question.ts'
import type { RequestsAtOnce } from './requests-at-once.ts'
import type { RoutingWebhookRecord } from './routing-webhook-store.ts'
import { WebhookBreaker } from './webhook-breaker.ts'
import { WebhookClient } from './webhook-client.ts'

export interface AskedWebhookDeps extends TargetRules, Clocks {
  readonly atOnce: RequestsAtOnce
  readonly schedule: Schedule
  readonly newUuid: () => string
  readonly log: Log
}

type Answer = HookAnswer<InviteDecision>

/** The end of a request: an answer that is allowed, or a failure. */
type Outcome =
  | { readonly kind: 'answered'; readonly answer: KeptAnswer; readonly bytes: number }
  | { readonly kind: 'failed'; readonly reason: string; readonly isTimeout: boolean }

const LOG_INTERVAL_MS = 60_000
const MAX_REASON_LENGTH = 300
/** After so long without a failure, the next one begins another count. */
const QUIET_MS = 10 * MINUTE_MS

export class AskedWebhook {
  readonly record: RoutingWebhookRecord
  /** Names it in traces and logs. */
  readonly name: string
  readonly #deps: AskedWebhookDeps
  readonly #client: WebhookClient
  readonly #breaker = new WebhookBreaker()
  readonly #cache: AnswerCache | undefined
  readonly #figures = {
    calls: 0,
    requests: 0,
    decided: 0,
    failed: 0,
    timeouts: 0,
    skipped: 0,
    cacheHits: 0,
    totalMs: 0,
  }
  #lastFailure: RoutingWebhookStatus['lastFailure'] = null
  #trouble: HookTrouble | undefined
  #loggedAt = -Infinity

  constructor(record: RoutingWebhookRecord, deps: AskedWebhookDeps) {
    this.record = record
    this.name = `routing webhook ${record.id}`
    this.#deps = deps
    this.#client = new WebhookClient({ ...deps, url: record.url, timeoutMs: record.timeoutMs })
    if (record.cacheSeconds > 0) this.#cache = new AnswerCache(record.cacheSeconds)
  }

  get status(): RoutingWebhookStatus {
    const isResting = this.#breaker.isResting(this.#deps.steadyNow())
    return { ...this.#figures, isResting, lastFailure: this.#lastFailure }
  }

  /** Its failures without a longer pause; undefined: none since its last change. */
  get trouble(): HookTrouble | undefined {
    return this.#trouble
  }

  close(): void {
    this.#client.close()
  }

  async ask(call: HookCall): Promise<Answer> {
    const { steadyNow } = this.#deps
    this.#figures.calls += 1
    const key = this.#cache && cacheKeyOf(this.record.cacheKey, call)
    const kept = key === undefined ? undefined : this.#cache?.get(key, steadyNow())
    if (kept !== undefined) {
      this.#figures.cacheHits += 1
      return this.#given(kept)
    }
    if (!this.#breaker.admit(steadyNow())) return this.#skipped('it rests after failures')
    const end = this.#deps.atOnce.begin(this.record.id, this.record.tenantId)
    if (end === undefined) {
      this.#breaker.withdrawn()
      return this.#skipped('too many requests at once')
    }
    const outcome = await this.#timed(call).finally(end)
    if (outcome.kind === 'failed') return this.#failed(outcome)
    this.#breaker.succeeded()
    // The receiver may say something else of a simulation.
    const isKept = call.isSimulated !== true
    if (isKept && key !== undefined)
      this.#cache?.keep(key, outcome.answer, outcome.bytes, steadyNow())
    return this.#given(outcome.answer)
  }

  /** A call could not use its decision. It has answered, so it does not rest. */
  unusable(why: string): void {
    this.#figures.failed += 1
    this.#note(`its answer cannot be used: ${why}`.slice(0, MAX_REASON_LENGTH))
  }

  /** Asks now; nothing is counted or kept. */
  async test(call: HookCall): Promise<RoutingWebhookTest> {
    const { steadyNow, atOnce } = this.#deps
    const since = steadyNow()
    const end = atOnce.begin(this.record.id, this.record.tenantId)
    const outcome: Outcome =
      end === undefined
        ? { kind: 'failed', reason: 'too many requests at once', isTimeout: false }
        : await this.#request(call).finally(end)
    const common = {
      fallback: this.record.fallback,
      ms: Math.round((steadyNow() - since) * 10) / 10,
    }
    if (outcome.kind === 'failed')
      return { outcome: 'failed', decision: null, reason: outcome.reason, ...common }
    const { answer: decision } = outcome
    return { outcome: decision === null ? 'nothing' : 'decided', decision, reason: null, ...common }
  }

  async #timed(call: HookCall): Promise<Outcome> {
    const since = this.#deps.steadyNow()
    const outcome = await this.#request(call)
    this.#figures.requests += 1
    this.#figures.totalMs += this.#deps.steadyNow() - since
    return outcome
  }

  async #request(call: HookCall): Promise<Outcome> {
    const body = questionOf(call, this.record.tenantId)
    const reply = await this.#client.post(this.#headersFor(body), body)
    if (reply.kind === 'failed') return reply
    if (reply.kind === 'nothing') return { kind: 'answered', answer: null, bytes: 0 }
    const value = parsed(reply.body)
    if (value === undefined) return wrong('the answer is no JSON')
    const checked = checkDecision('onInvite', value)
    if (checked.kind === 'wrong') return wrong(checked.why.slice(0, MAX_REASON_LENGTH))
    const answer = checked.kind === 'nothing' ? null : checked.decision
    return { kind: 'answered', answer, bytes: reply.body.length }
  }

  #headersFor(body: string): Record<string, string> {
    const { secret, previous } = this.record
    const now = this.#deps.now()
    const secrets =
      previous !== null && now < previous.expiresAt ? [secret, previous.secret] : [secret]
    const id = `msg_${this.#deps.newUuid()}`
    const seconds = Math.floor(now / 1_000)
    return {
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': signatures(secrets, id, seconds, body),
      'user-agent': 'tollgate',
    }
  }

  #given(answer: KeptAnswer): Answer {
    if (answer === null) return { kind: 'nothing' }
    this.#figures.decided += 1
    const { tenantId, fallback } = this.record
    return { kind: 'decided', decision: answer, by: this.name, tenantId, fallback }
  }

  #skipped(reason: string): Answer {
    this.#figures.skipped += 1
    return this.#failure(reason)
  }

  #failed({ reason, isTimeout }: Extract<Outcome, { readonly kind: 'failed' }>): Answer {
    if (isTimeout) this.#figures.timeouts += 1
    const now = this.#deps.steadyNow()
    const isRest = this.#breaker.failed(now)
    this.#note(reason)
    if (isRest || now - this.#loggedAt >= LOG_INTERVAL_MS) {
      this.#loggedAt = now
      const { fallback } = this.record
      this.#deps.log('warn', `${this.name} has failed`, { reason, rests: isRest, fallback })
    }
    return this.#failure(reason)
  }

  #note(reason: string): void {
    const at = this.#deps.now()
    const known = this.#trouble
    const same = known !== undefined && at - known.lastAt <= QUIET_MS ? known : undefined
    this.#lastFailure = { at, reason }
    this.#trouble = {
      by: this.name,
      hook: 'onInvite',
      message: reason,
      file: null,
      line: null,
      count: (same?.count ?? 0) + 1,
      firstAt: same?.firstAt ?? at,
      lastAt: at,
      webhook: { id: this.record.id, tenantId: this.record.tenantId },
    }
  }

  #failure(why: string): Answer {
    this.#figures.failed += 1
    const { tenantId, fallback } = this.record
    const owner = tenantId !== null && { tenantId }
    return { kind: 'failed', by: this.name, why, ...owner, fallback }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

const wrong = (reason: string): Outcome => ({ kind: 'failed', reason, isTimeout: false })
