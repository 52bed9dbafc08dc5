/**
 * The operator's own code as call control asks it: before a call is admitted, when its destinations
 * are known, when one has not taken it; and what it is told. Without such a hook nothing is asked,
 * and nothing is waited for. Emergency calls ask none.
 */
import type { CallCost, CallRecord } from '../../../schema/contracts/call-record.ts'
import type { AuthorizationRequest } from '../../../schema/contracts/charging.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type {
  DecidingHook,
  HookAnswer,
  HookArgument,
  HookDecisions,
  HookFallback,
  HookParty,
  HookPort,
  HookRefusal,
} from '../../../schema/contracts/hooks.ts'
import { reasonPhrase } from '../../../schema/sip/index.ts'
import type { FailedAttempt, HookEffects } from '../call-machine/protocol.ts'
import type { HookNote, LiveCall, Note } from '../call-machine/state.ts'
import { type CallRefusal, hookFailed, refused } from '../cdr/end-reason.ts'
import { authorizationOf } from '../inbound/admission.ts'
import { isOfSupervisor, type IncomingInvite } from '../inbound/incoming-invite.ts'
import { type Route, type RouteDeps, tenantOf } from '../inbound/route.ts'
import { decisionOn } from './decision.ts'
import {
  answeredFacts,
  type CallBegins,
  candidateFacts,
  endedFacts,
  hookCallOf,
  recordFacts,
} from './facts.ts'
import { leftOut } from './left-out.ts'
import { type NamedRecords, reachOf } from './reach.ts'

/** The parts of the engine that only hooks need. */
export interface HookSources {
  readonly port: HookPort
  readonly records: NamedRecords
  /** The payer, as far as the source or the caller's number names one. Absent: others know. */
  readonly payerOf?:
    | ((request: Omit<AuthorizationRequest, 'callUuid' | 'startedAt'>) => HookParty | undefined)
    | undefined
  /** Whether there is a relay, and a place for recordings. */
  readonly canRecord: () => boolean
}

interface CallHooksDeps extends RouteDeps {
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly log: Log
}

/** A call that begins, as a hook has changed or refused it. */
export type HookedInvite = { readonly effects: HookEffects } & (
  | { readonly kind: 'goes_on'; readonly invite: IncomingInvite }
  | { readonly kind: 'refused'; readonly end: CallRefusal }
)

export class CallHooks {
  readonly #sources: HookSources
  readonly #deps: CallHooksDeps

  constructor(sources: HookSources, deps: CallHooksDeps) {
    this.#sources = sources
    this.#deps = deps
  }

  /** Whether a hook is asked about a call that begins with this INVITE. */
  asksInvite({ origin, calledNumber }: IncomingInvite): boolean {
    return (
      this.#sources.port.has('onInvite') &&
      origin.kind !== 'unknown' &&
      !this.#deps.routing.isEmergencyNumber(calledNumber)
    )
  }

  get asksAttempts(): boolean {
    return this.#sources.port.has('onAttemptFailed')
  }

  /** Asks about a call that begins. `isSimulated`: no call follows. */
  async invite(
    invite: IncomingInvite,
    begins: CallBegins,
    isSimulated = false,
  ): Promise<HookedInvite> {
    const tenantId = tenantOf(invite.origin, this.#deps)
    const customer = this.#sources.payerOf?.(authorizationOf(invite, this.#deps))
    const asked = hookCallOf(invite, begins, tenantId, customer)
    const hook = 'onInvite'
    const answer = await this.#ask(hook, isSimulated ? { ...asked, isSimulated } : asked)
    if (answer.kind === 'nothing') return { kind: 'goes_on', invite, effects: { notes: [] } }
    if (answer.kind === 'failed') return this.#failed(invite, { hook, ...answer })
    const { decision, by, byField, tenantId: decider, fallback } = answer
    const { records, port } = this.#sources
    const reach = reachOf(invite, decider, records, this.#deps)
    const decided = decisionOn(invite, decision, reach)
    if (decided.kind === 'wrong') {
      const { why, field } = decided
      if (!isSimulated) port.unusable(hook, byField?.[field] ?? by, why)
      return this.#failed(invite, { hook, by, why, tenantId: decider, fallback })
    }
    const notes = [this.#note({ hook, by, decision })]
    if (decided.kind === 'refused') {
      const end = refusalOf(decided.refusal)
      return { kind: 'refused', end, effects: { ...decided.effects, notes } }
    }
    if (decision.record === true && !this.#sources.canRecord())
      notes.push(
        this.#note({
          ...{ hook, by, failed: NOT_RECORDED, fallback: 'continue' },
          ...(decider !== null && { tenantId: decider }),
        }),
      )
    const { carriers: names } = decision
    const { target } = decided.invite
    const chosenBy = names && { by: byField?.['carriers'] ?? by, tenantId: decider, names }
    const going =
      target?.kind === 'carriers' && chosenBy
        ? { ...decided.invite, target: { ...target, chosenBy } }
        : decided.invite
    return { kind: 'goes_on', invite: going, effects: { ...decided.effects, notes } }
  }

  /** Notes carriers that a hook has chosen in vain. `isSimulated`: no call follows. */
  leftOut(
    { target }: Pick<IncomingInvite, 'target'>,
    route: Route,
    isSimulated = false,
  ): readonly Note[] {
    const left = target?.kind === 'carriers' ? leftOut(target, route) : undefined
    if (left === undefined || target?.kind !== 'carriers' || !target.chosenBy) return []
    const { by, tenantId } = target.chosenBy
    const hook = 'onInvite'
    if (left.isAll && !isSimulated) this.#sources.port.unusable(hook, by, left.why)
    const fallback = left.isAll ? 'refuse' : 'continue'
    const owner = tenantId !== null && { tenantId }
    return [this.#note({ hook, by, failed: left.why, fallback, ...owner })]
  }

  #failed(invite: IncomingInvite, failure: Failure): HookedInvite {
    const effects = { notes: [this.#noteFailure(failure, invite.callUuid)] }
    return failure.fallback === 'refuse'
      ? { kind: 'refused', end: this.#hookFailed(), effects }
      : { kind: 'goes_on', invite, effects }
  }

  /**
   * Asks about a route. Undefined: no hook is asked about it. `isSimulated`: no call follows.
   */
  route(
    { start }: Pick<LiveCall, 'start'>,
    route: Route,
    calledNumber: string,
    isSimulated = false,
  ): Promise<HookedRoute> | undefined {
    const isAsked = this.#sources.port.has('onRoute') && !isOfSupervisor(start)
    return isAsked && route.kind === 'candidates'
      ? this.#askRoute(start, route, calledNumber, isSimulated)
      : undefined
  }

  async #askRoute(
    { callUuid, callerNumber: from }: LiveCall['start'],
    route: Route & { readonly kind: 'candidates' },
    to: string,
    isSimulated: boolean,
  ): Promise<HookedRoute> {
    const { direction, candidates } = route
    const hook = 'onRoute'
    const facts = candidates.map(candidateFacts)
    const asked = { callUuid, from, to, direction, candidates: facts }
    const answer = await this.#ask(hook, isSimulated ? { ...asked, isSimulated } : asked)
    if (answer.kind === 'nothing') return { route, notes: [] }
    const refusedBy = (end: CallRefusal): Route => ({ kind: 'refused', direction, end })
    const failed = (failure: Failure): HookedRoute => ({
      route: failure.fallback === 'refuse' ? refusedBy(this.#hookFailed()) : route,
      notes: [this.#noteFailure(failure, callUuid)],
    })
    if (answer.kind === 'failed') return failed({ hook, ...answer })
    const { decision, by, fallback } = answer
    const notes = [this.#note({ hook, by, decision })]
    if (decision.refuse) return { route: refusedBy(refusalOf(decision.refuse)), notes }
    if (decision.order === undefined) return { route, notes }
    const chosen = new Set(decision.order)
    const ordered = [...chosen].flatMap((position) => candidates[position] ?? [])
    if (ordered.length < chosen.size || ordered.length === 0) {
      const why = `order names no position of the ${candidates.length} candidates`
      if (!isSimulated) this.#sources.port.unusable(hook, by, why)
      return failed({ hook, by, why, fallback })
    }
    return { route: { ...route, candidates: ordered }, notes }
  }

  /** Asks about the next destination. Undefined: the hook says nothing. */
  async attempt(
    call: Pick<LiveCall, 'start'>,
    attempt: FailedAttempt,
    isSimulated = false,
  ): Promise<HookedAttempt> {
    const { callUuid, calledNumber: to } = call.start
    const hook = 'onAttemptFailed'
    const answer = await this.#ask(hook, {
      callUuid,
      ...(isSimulated && { isSimulated }),
      to,
      candidate: candidateFacts(attempt.destination),
      status: attempt.status,
      reason: attempt.reason,
      remaining: attempt.remaining.map(candidateFacts),
      movesOn: attempt.goesOn,
    })
    if (answer.kind === 'nothing') return { failover: undefined, notes: [] }
    if (answer.kind === 'failed') {
      const notes = [this.#noteFailure({ hook, ...answer }, callUuid)]
      return { failover: answer.fallback === 'refuse' ? false : undefined, notes }
    }
    const { decision, by } = answer
    const notes = [this.#note({ hook, by, decision })]
    const isInVain = decision.failover === true && !attempt.mayGoOn
    if (isInVain) notes.push(this.#note({ hook, by, failed: HEARD, fallback: 'continue' }))
    return { failover: isInVain ? undefined : decision.failover, notes }
  }

  answered(call: LiveCall): void {
    if (this.#sources.port.has('onAnswer')) this.#sources.port.tell('onAnswer', answeredFacts(call))
  }

  ended(record: CallRecord): void {
    if (this.#sources.port.has('onEnd')) this.#sources.port.tell('onEnd', endedFacts(record))
  }

  /** The record is stored. `cost` undefined: another system charges. */
  recorded(record: CallRecord, cost: CallCost | undefined): void {
    if (this.#sources.port.has('onRecord'))
      this.#sources.port.tell('onRecord', recordFacts(record, cost))
  }

  #ask<H extends DecidingHook>(
    hook: H,
    argument: HookArgument<H>,
  ): Promise<HookAnswer<HookDecisions[H]>> {
    return this.#sources.port.ask(hook, argument)
  }

  #note(note: HookNote): Note {
    return { at: this.#deps.now(), what: 'hook', ...note }
  }

  #noteFailure({ hook, by, why, tenantId, fallback }: Failure, callUuid: string): Note {
    this.#deps.log('warn', 'a hook has failed', { callUuid, hook, by, why, fallback })
    return this.#note({ hook, by, failed: why, fallback, ...(tenantId != null && { tenantId }) })
  }

  #hookFailed(): CallRefusal {
    return hookFailed(this.#deps.retryAfterSeconds)
  }
}

interface Failure {
  readonly hook: DecidingHook
  readonly by: string
  readonly why: string
  readonly tenantId?: number | null
  readonly fallback: HookFallback
}

export interface HookedRoute {
  readonly route: Route
  readonly notes: readonly Note[]
}

interface HookedAttempt {
  readonly failover: boolean | undefined
  readonly notes: readonly Note[]
}

const NOT_RECORDED =
  'the call is not recorded: recording needs RTPENGINE, RECORDING_SPOOL and RECORDINGS_PATH'
const HEARD = 'no other destination is tried: the caller has heard this one before its answer'

const refusalOf = ({ status, reason }: HookRefusal): CallRefusal =>
  refused(status, reason ?? reasonPhrase(status), 'hook_refused')
