/**
 * Dialing: destinations tried one after the other, the phones of an extension at the same time (RFC
 * 3261 §16.7). Trunks, nodes, phones, transfer targets and the source of click-to-call are all
 * dialled here.
 */
import type { PresentedIdentity } from '../../../schema/contracts/caller-identity.ts'
import {
  hookFailed,
  noCandidate,
  reasonHeader,
  refused,
  type End,
  type CallRefusal,
} from '../cdr/end-reason.ts'
import type { PhoneCandidate } from '../dialing/outgoing-invite.ts'
import type { CallDestination, ExtensionDestination, LimitedDestination } from '../inbound/route.ts'
import type { Headers } from '../signalling.ts'
import type { GatewayCandidate } from '../../routing/routing.ts'
import {
  abandonOthers,
  attemptOf,
  givenUp,
  startAttempt,
  startRingTimer,
  stepAttempt,
  stopRingTimer,
} from './attempt.ts'
import {
  afterResult,
  healthShown,
  holderLost,
  isSeizure,
  isUntaken,
  resultOfPhones,
} from './failover.ts'
import type { Dial, FailedAttempt, StepContext } from './protocol.ts'
import {
  MAX_NOTES,
  nowhere,
  type InviteAttempt,
  type AttemptResult,
  type Call,
  type Dialing,
  type Redirection,
  type Forward,
  type CallLocation,
  type SourcePhones,
} from './state.ts'

/** A phone on a slow network may take longer than a node to respond. */
const PHONE_TIMEOUT_MS = 4_000
/** How long the phones of an extension with a voicemail ring. */
const RING_BEFORE_VOICEMAIL_MS = 25_000

const forwardedElsewhere: Headers = { Reason: 'SIP;cause=302;text="Call forwarded"' }

/** Tries the destinations of a route in their order. */
export function dialRoute(
  ctx: StepContext,
  call: Call,
  { route, invite, isEmergency }: Dial,
  visited: readonly string[] = [],
): void {
  call.notes.push({ at: ctx.now, what: 'routed', route })
  if (route.kind === 'refused') return exhausted(ctx, call, route.end)
  call.dialing = {
    purpose: 'destination',
    invite,
    isEmergency,
    visited,
    startedAt: ctx.now,
    tries: 0,
    candidates: route.candidates,
    attempts: [],
    last: route.otherwise ?? noCandidate,
  }
  return tryNext(ctx, call)
}

/** Rings the phones of click-to-call's source; the first that is picked up is to be connected. */
export function ringSource(
  ctx: StepContext,
  call: Call,
  { phones, invite, ringMs }: SourcePhones,
): void {
  call.dialing = {
    purpose: 'source',
    invite,
    isEmergency: false,
    visited: [],
    startedAt: ctx.now,
    tries: 0,
    candidates: [],
    attempts: [],
    last: noCandidate,
  }
  startRingTimer(ctx, call, ringMs)
  for (const phone of phones) startAttempt(ctx, call, phone, true)
}

function exhausted(ctx: StepContext, call: Call, end: End): void {
  call.dialing = undefined
  ctx.signals.push({ type: 'exhausted', callUuid: call.start.callUuid, end })
}

function tryNext(ctx: StepContext, call: Call): void {
  const { dialing } = call
  if (dialing === undefined) return undefined
  const [next, ...others] = dialing.candidates
  if (next === undefined || isHuntedOut(ctx, dialing)) return exhausted(ctx, call, dialing.last)
  dialing.candidates = others
  dialing.current = next
  dialing.attempts = []
  const from = calledFrom(call)
  if (!isLimited(next)) {
    moveTo(ctx, call, { ...from, ...locationOf(next) })
    return startCurrent(ctx, call)
  }
  // The call leaves the previous destination first: it must not fill a limit against itself.
  moveTo(ctx, call, from)
  ctx.commands.push({ type: 'takeRoom', callUuid: call.start.callUuid, destination: next })
  return undefined
}

/** Whether no further destination is tried; an emergency goes on to the last. */
const isHuntedOut = ({ now }: StepContext, dialing: Dialing): boolean =>
  dialing.limits !== undefined &&
  !dialing.isEmergency &&
  (dialing.tries >= dialing.limits.attempts ||
    now - dialing.startedAt >= dialing.limits.seconds * 1_000)

/** The strictest limits of all carriers that are tried hold from then on. */
function noteTry(dialing: Dialing, destination: CallDestination): void {
  dialing.tries += 1
  if (destination.kind !== 'gateway' || destination.hunting === undefined) return
  const { maxAttempts, maxSeconds } = destination.hunting
  if (maxAttempts === null && maxSeconds === null) return
  const { attempts = Infinity, seconds = Infinity } = dialing.limits ?? {}
  dialing.limits = {
    attempts: Math.min(attempts, maxAttempts ?? NO_LIMIT),
    seconds: Math.min(seconds, maxSeconds ?? NO_LIMIT),
  }
}

/** The state of a call is written as JSON, which has no infinity. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER

/** Nodes without a limit are tried without asking. */
const isLimited = (destination: CallDestination): destination is LimitedDestination =>
  destination.kind === 'gateway' || ('isLimited' in destination && destination.isLimited)

/** The next destination takes the call, or has reached its limit. */
export function roomTaken(ctx: StepContext, call: Call, isTaken: boolean): void {
  const { dialing } = call
  const { current } = dialing ?? {}
  if (!dialing || !current || !isLimited(current) || dialing.attempts.length > 0 || call.end)
    return undefined
  if (!isTaken) {
    const { last } = dialing
    const isFirst = last.kind === 'refused' && last.code === noCandidate.code
    if (isFirst || last === dialing.ledOn)
      dialing.last = fullEnd(current, ctx.timing.retryAfterSeconds)
    return tryNext(ctx, call)
  }
  moveTo(ctx, call, { ...calledFrom(call), ...locationOf(current) })
  return startCurrent(ctx, call)
}

/** The caller gets this when no other destination is left. */
function fullEnd(destination: LimitedDestination, retryAfterSeconds: number): CallRefusal {
  const headers = { 'Retry-After': String(retryAfterSeconds) }
  const { status, reason } = noCandidate
  switch (destination.kind) {
    case 'node': {
      const { setId, nodeId } = destination
      return { ...refused(status, reason, 'node_limit', headers, `node ${nodeId}`), setId }
    }
    case 'agent':
      return refused(503, UNAVAILABLE, 'agent_limit', headers, `agent ${destination.agentId}`)
    case 'gateway':
    default:
      return refused(503, UNAVAILABLE, 'carrier_limit', headers, `carrier ${destination.carrierId}`)
  }
}

const UNAVAILABLE = 'Service Unavailable'

/** A call that came in from a carrier counts there, wherever it goes. */
function calledFrom({ origin }: Call): CallLocation {
  if (origin?.kind !== 'carrier') return nowhere
  return { ...nowhere, carrierId: origin.carrierId, carrier: origin.name }
}

function locationOf(destination: CallDestination): Partial<CallLocation> {
  switch (destination.kind) {
    case 'node': {
      const { setId, nodeId, uri } = destination
      return { setId, nodeId, node: uri }
    }
    case 'gateway':
      return { carrierId: destination.carrierId, carrier: destination.carrierName }
    case 'agent':
      return { agentId: destination.agentId }
    case 'spy': {
      const { setId, nodeId, node } = destination
      return { setId, nodeId, node }
    }
    case 'extension':
    case 'domain':
    case 'listener':
    case 'other-node':
    case 'application':
    default:
      return {}
  }
}

function moveTo(ctx: StepContext, call: Call, to: CallLocation): void {
  ctx.commands.push({
    type: 'count',
    callUuid: call.start.callUuid,
    before: call.place,
    place: to,
  })
  call.place = to
  call.peers.callee = null
}

function startCurrent(ctx: StepContext, call: Call): void {
  const { current } = call.dialing ?? {}
  if (call.dialing === undefined || current === undefined) return undefined
  call.destination = current
  noteTry(call.dialing, current)
  if (current.kind !== 'extension') return startAttempt(ctx, call, current, false)
  return ringPhones(ctx, call, current)
}

/**
 * Rings the phones of an extension. Without phones the call ends at once, as if none were
 * reachable.
 */
function ringPhones(
  ctx: StepContext,
  call: Call,
  { phones, voicemail }: ExtensionDestination,
): void {
  const { ringTimeoutMs } = ctx.timing
  const hasMore = voicemail !== undefined
  startRingTimer(
    ctx,
    call,
    hasMore ? Math.min(RING_BEFORE_VOICEMAIL_MS, ringTimeoutMs) : ringTimeoutMs,
  )
  // The early media of one phone would be contradicted by the answer of another.
  const isBranch = phones.length > 1 || hasMore
  const { dialing } = call
  for (const phone of phones)
    if (call.dialing === dialing) startAttempt(ctx, call, phone, isBranch, firstResponseMs(phone))
  if (phones.length === 0) groupEnded(ctx, call)
}

/** Another instance answers 100 by itself, and waits for the phone. */
const firstResponseMs = ({ holder }: PhoneCandidate): number | undefined =>
  holder === undefined ? PHONE_TIMEOUT_MS : undefined

/** All phones have rung long enough. */
export function ringTimedOut(ctx: StepContext, call: Call): void {
  if (call.dialing?.purpose === 'source')
    return void ctx.signals.push({
      type: 'stop',
      callUuid: call.start.callUuid,
      end: { kind: 'no-answer' },
    })
  return abandonOthers(ctx, call, undefined, 'no answer', givenUp)
}

/** The call is over: so are its attempts. */
export function giveUpAttempts(ctx: StepContext, call: Call, end: End): void {
  const { dialing } = call
  if (dialing === undefined) return
  stopRingTimer(ctx, call)
  const isSource = dialing.purpose === 'source'
  // RFC 3326: a phone counts a call as missed unless the CANCEL says that it was completed
  // elsewhere.
  const cancelHeaders =
    end.kind === 'cancelled' && end.reason && !isSource ? { Reason: end.reason } : givenUp
  const headers = end.kind === 'cut' ? { Reason: reasonHeader(end) } : cancelHeaders
  // A hang-up of ours says nothing about a carrier.
  if (end.kind === 'cancelled' || end.kind === 'no-answer') measure(ctx, dialing, false)
  call.dialing = undefined
  for (const attempt of dialing.attempts) {
    if (attempt.state === 'over') continue
    if (attempt.reason === '') attempt.reason = end.kind
    stepAttempt(ctx, call, attempt, 'stopped', { result: { kind: 'stopped' }, headers })
  }
  record(call, dialing)
}

/** The answered attempt has led to a call, or has not: nothing else is dialled. */
export function endDialing(ctx: StepContext, call: Call, isAnswered: boolean): void {
  const { dialing } = call
  if (dialing === undefined) return
  call.dialing = undefined
  for (const attempt of dialing.attempts)
    if (attempt.state === 'answered') attempt.endedAt = ctx.now
  if (dialing.attempts[0]?.state === 'answered') measure(ctx, dialing, true)
  record(call, dialing)
  if (isAnswered) reportHealth(ctx, dialing.current, { kind: 'answered' })
}

/**
 * Attempts are recorded in the order in which they began. An application that lets a call go on is
 * none.
 */
function record(call: Call, { purpose, attempts }: Dialing): void {
  if (purpose !== 'destination') return
  const shown = attempts.filter(({ result }) => result?.kind !== 'continued')
  call.attempts.push(...shown.map(recordOf))
}

/** An attempt as the call's record has it. */
export const recordOf = (attempt: InviteAttempt) => {
  const { destination, status, reason, startedAt, endedAt, presented, sent } = attempt
  const tried = { destination, status, reason, ...(presented && { presented: shownOf(presented) }) }
  // The times come last (`control/reports/cdr-text.ts`).
  return sent === undefined
    ? { ...tried, startedAt, endedAt }
    : { ...tried, sent, startedAt, endedAt }
}

const shownOf = ({ number, asserted, attestation, why }: PresentedIdentity) => ({
  number,
  asserted,
  attestation,
  why,
})

/** Continues after the end of an attempt. */
export function attemptOver(ctx: StepContext, call: Call, attempt: InviteAttempt): void {
  const { dialing } = call
  const { result } = attempt
  if (dialing === undefined || result === undefined) return undefined
  if (dialing.purpose === 'source') return sourceSettled(ctx, call, attempt, result)
  const isPhone = dialing.current?.kind === 'extension' && dialing.beforeVoicemail === undefined
  if (!isPhone) return singleEnded(ctx, call, result)
  const redirect = result.kind === 'rejected' && !result.isFinal ? result.redirect : undefined
  if (redirect && dialing.forward === undefined && dialing.isAskingForward !== true) {
    dialing.isAskingForward = true
    const { callUuid } = call.start
    const { legId } = attempt
    ctx.commands.push({ type: 'decideForward', callUuid, legId, headers: redirect })
  }
  return groupEnded(ctx, call)
}

/** Whether a phone's 3xx is followed; the other phones are given up then. */
export function forwardDecided(
  ctx: StepContext,
  call: Call,
  legId: string,
  forward: Forward | undefined,
): void {
  const { dialing } = call
  if (dialing?.isAskingForward !== true) return
  dialing.isAskingForward = undefined
  if (forward) {
    dialing.forward = forward
    abandonOthers(ctx, call, attemptOf(call, legId), 'forwarded', forwardedElsewhere)
  }
  if (call.dialing === dialing) groupEnded(ctx, call)
}

/** After so many lost instances the phones of a call are not looked for again. */
const MAX_SEARCHES = 3

/**
 * Nothing comes back through the instance through which the phone is called: the phones are called
 * where they are now, or the attempt has failed.
 */
export function lostHolder(ctx: StepContext, call: Call, attempt: InviteAttempt): void {
  const { dialing } = call
  const { phone, state } = attempt
  if (dialing === undefined || phone === undefined || state === 'over' || state === 'answered')
    return
  const isSearched =
    dialing.purpose === 'destination' &&
    dialing.current?.kind === 'extension' &&
    dialing.beforeVoicemail === undefined &&
    (dialing.searches ?? 0) < MAX_SEARCHES
  if (isSearched) {
    dialing.searches = (dialing.searches ?? 0) + 1
    dialing.isAskingPhones = true
  }
  attempt.reason = 'the node of the phone is lost'
  stepAttempt(ctx, call, attempt, 'abandoned', { result: holderLost })
  if (isSearched && call.dialing === dialing)
    ctx.commands.push({ type: 'findPhones', callUuid: call.start.callUuid, ...phone })
}

/** Calls those that are not called already. */
export function phonesFound(ctx: StepContext, call: Call, phones: readonly PhoneCandidate[]): void {
  const { dialing } = call
  if (dialing?.isAskingPhones !== true) return
  dialing.isAskingPhones = undefined
  const isTried = (phone: PhoneCandidate): boolean =>
    dialing.attempts.some(
      ({ destination, holder, holderRun, state }) =>
        destination === phone.uri &&
        (state !== 'over' || (holder === phone.holder && holderRun === phone.holderRun)),
    )
  for (const phone of phones)
    if (call.dialing === dialing && !isTried(phone))
      startAttempt(ctx, call, phone, true, firstResponseMs(phone))
  if (call.dialing === dialing) groupEnded(ctx, call)
}

/** When all phones of an extension are done: their best response counts. */
function groupEnded(ctx: StepContext, call: Call): void {
  const { dialing } = call
  if (dialing?.current?.kind !== 'extension' || dialing.isAskingForward === true) return undefined
  if (dialing.isAskingPhones === true) return undefined
  if (dialing.attempts.some(({ state }) => state !== 'over')) return undefined
  stopRingTimer(ctx, call)
  const results = dialing.attempts.flatMap(({ result }) => result ?? [])
  const { forward, current } = dialing
  const result = resultOfPhones(current, results)
  record(call, dialing)
  dialing.attempts = []
  if (forward) return followForward(ctx, call, current.uri, forward)
  if (current.voicemail && isUntaken(result)) {
    dialing.beforeVoicemail = result
    return startAttempt(ctx, call, current.voicemail, false)
  }
  return resultOf(ctx, call, result)
}

/** A node, a gateway, an agent, a domain; or the voicemail of an extension. */
function singleEnded(ctx: StepContext, call: Call, result: AttemptResult): void {
  const { dialing } = call
  if (dialing === undefined) return undefined
  const isFollowed = isRedirect(dialing, result)
  if (isSeizure(result) && !isFollowed) measure(ctx, dialing, false)
  record(call, dialing)
  dialing.attempts = []
  const { current, beforeVoicemail } = dialing
  reportHealth(ctx, current, result)
  dialing.beforeVoicemail = undefined
  if (isFollowed) {
    dialing.redirect = result
    const headers = result.redirect ?? {}
    ctx.commands.push({ type: 'decideRedirect', callUuid: call.start.callUuid, headers })
    return undefined
  }
  // If the voicemail does not respond, the result of the phones counts.
  const isLost = isWithoutAnswer(result)
  return resultOf(ctx, call, beforeVoicemail && isLost ? beforeVoicemail : result)
}

/** A 3xx of a carrier whose redirections are followed, before the caller has heard anything. */
const isRedirect = (
  { current, purpose }: Dialing,
  result: AttemptResult,
): result is NonNullable<Dialing['redirect']> =>
  purpose === 'destination' &&
  current?.kind === 'gateway' &&
  current.hunting?.redirects === 'follow' &&
  result.kind === 'rejected' &&
  result.redirect !== undefined &&
  !result.isFinal

/** A 3xx leads to gateways, which are tried before all others, or nowhere. */
export function redirectDecided(
  ctx: StepContext,
  call: Call,
  { gateways, passedOver }: Redirection,
): void {
  const { dialing } = call
  const { redirect, current } = dialing ?? {}
  if (!dialing || redirect === undefined || current?.kind !== 'gateway' || call.end) return
  dialing.redirect = undefined
  dialing.redirections = (dialing.redirections ?? 0) + gateways.length
  // A redirect server that leads the call on has done what it is for.
  if (gateways.length === 0) noteFailed(ctx, current)
  const ids = new Set(gateways.map(({ gatewayId }) => gatewayId))
  const others = dialing.candidates.filter(
    (each) => each.kind !== 'gateway' || !ids.has(each.gatewayId),
  )
  dialing.candidates = [...gateways, ...others]
  const note = {
    carrier: current.carrierName,
    gateways: gateways.map(({ uri }) => uri),
    passedOver,
  }
  if (call.notes.length < MAX_NOTES) call.notes.push({ at: ctx.now, what: 'redirected', ...note })
  return resultOf(ctx, call, redirect, gateways.length > 0)
}

/** Counts an attempt at a gateway whose route has floors of quality. */
function measure(
  { commands }: StepContext,
  { current: destination, attempts: [attempt] }: Dialing,
  isAnswered: boolean,
): void {
  if (destination?.kind !== 'gateway' || destination.measuredBy === undefined) return
  if (attempt === undefined) return
  const { progressAt, startedAt } = attempt
  const delayMs = progressAt === undefined ? null : progressAt - startedAt
  commands.push({ type: 'measure', destination, isAnswered, delayMs })
}

/** The same for one whose 3xx has led nowhere. */
function noteFailed({ commands }: StepContext, destination: GatewayCandidate): void {
  if (destination.measuredBy === undefined) return
  commands.push({ type: 'measure', destination, isAnswered: false, delayMs: null })
}

/** Reports the health of a node or a gateway, as a live INVITE has shown it. */
function reportHealth(
  { commands }: StepContext,
  destination: CallDestination | undefined,
  result: AttemptResult,
): void {
  const health = healthShown(result)
  if (health && (destination?.kind === 'node' || destination?.kind === 'gateway'))
    commands.push({ type: 'reportHealth', destination, health })
}

function resultOf(ctx: StepContext, call: Call, result: AttemptResult, isRedirected = false): void {
  const { dialing } = call
  if (dialing === undefined) return undefined
  if (
    dialing.current?.kind === 'application' &&
    dialing.current.mustAnswer &&
    isWithoutAnswer(result)
  )
    return exhausted(ctx, call, hookFailed(ctx.timing.retryAfterSeconds))
  const { current, isEmergency } = dialing
  const rules = current?.kind === 'gateway' ? current.hunting : undefined
  const { last, isLast } = afterResult(result, dialing.last, { rules, isEmergency })
  dialing.last = last
  if (isRedirected) dialing.ledOn = last
  const mayGoOn = isRedirected || !isLast || isUnknownThere(current, result)
  const goesOn = mayGoOn && !isHuntedOut(ctx, dialing)
  if (ctx.asksAttempts === true && !isEmergency && current !== undefined && !isOurOwn(current))
    return askHook(ctx, call, failedAttempt(current, dialing, result, goesOn))
  return goesOn ? tryNext(ctx, call) : exhausted(ctx, call, last)
}

const isWithoutAnswer = ({ kind }: AttemptResult): boolean =>
  kind === 'silent' || kind === 'not-sent' || kind === 'withheld'

/** Supervisors, calls between instances, and applications go where no route leads. */
const isOurOwn = ({ kind }: CallDestination): boolean =>
  kind === 'spy' || kind === 'listener' || kind === 'other-node' || kind === 'application'

function askHook(ctx: StepContext, call: Call, attempt: FailedAttempt): void {
  if (call.dialing) call.dialing.asked = { goesOn: attempt.goesOn }
  ctx.commands.push({ type: 'askAttempt', callUuid: call.start.callUuid, ...attempt })
}

function failedAttempt(
  destination: CallDestination,
  { candidates }: Dialing,
  result: AttemptResult,
  goesOn: boolean,
): FailedAttempt {
  const { status, reason } = result.kind === 'rejected' ? result : noResponse
  // All phones of an extension have a final result; only a single destination was heard alone.
  const isHeard = result.kind === 'rejected' && result.isFinal && destination.kind !== 'extension'
  return { destination, remaining: candidates, status, reason, goesOn, mayGoOn: !isHeard }
}

const noResponse = { status: 0, reason: '' }

/** A hook says whether the next destination is tried, or nothing. */
export function attemptDecided(ctx: StepContext, call: Call, failover: boolean | undefined): void {
  const { dialing } = call
  if (dialing?.asked === undefined) return undefined
  const { goesOn } = dialing.asked
  dialing.asked = undefined
  return (failover ?? goesOn) ? tryNext(ctx, call) : exhausted(ctx, call, dialing.last)
}

/**
 * Whether this instance does not have the dialog that is to be replaced: another instance may have
 * it.
 */
const isUnknownThere = (current: CallDestination | undefined, result: AttemptResult): boolean =>
  current?.kind === 'other-node' && result.kind === 'rejected' && result.status === 481

/** Inside the tenant the same call is dialled; to the outside a call of its own. */
function followForward(ctx: StepContext, call: Call, by: string, { invite, route }: Forward): void {
  const { visited = [] } = call.dialing ?? {}
  const { callUuid } = call.start
  if (route) return dialRoute(ctx, call, { route, invite, isEmergency: false }, [...visited, by])
  call.dialing = undefined
  ctx.signals.push({ type: 'forward', callUuid })
  ctx.commands.push({ type: 'forwardOut', callUuid, by, invite })
  return undefined
}

/** A phone of the source refuses, or cannot be reached. */
function sourceSettled(
  ctx: StepContext,
  call: Call,
  attempt: InviteAttempt,
  result: AttemptResult,
): void {
  const { dialing } = call
  if (dialing === undefined) return
  if (result.kind === 'rejected') dialing.refusal = { status: result.status, reason: result.reason }
  const isDeclined = result.kind === 'rejected' && result.status >= 600
  // RFC 3261 §16.7 step 5: 6xx speaks for all phones.
  if (!isDeclined && dialing.attempts.some(({ state }) => state !== 'over')) return
  if (isDeclined) abandonOthers(ctx, call, attempt, 'declined elsewhere', givenUp)
  if (call.dialing !== dialing) return
  stopRingTimer(ctx, call)
  const { status = 480, reason = '' } = dialing.refusal ?? {}
  const shownStatus = status < 400 ? 480 : status
  exhausted(ctx, call, { kind: 'rejected', status: shownStatus, reason, headers: {} })
}
