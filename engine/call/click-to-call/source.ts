/** Calls that begin at the phones of an extension: they ring, and who picks up is connected further. */
import type { ExtensionRecord } from '../../registrar/extension-directory.ts'
import type { Registrar } from '../../registrar/registrar.ts'
import type { ActiveCalls } from '../active-calls.ts'
import type { Call, CallStart } from '../call.ts'
import type { Outcome } from '../cascade.ts'
import type { Announced, PhoneCandidate } from '../dialing/outgoing-invite.ts'
import type { Reading } from '../inbound/incoming-invite.ts'
import type { End } from '../cdr/end-reason.ts'
import type { ReachDeps } from '../setup/reach.ts'
import { store, talk, type TalkDeps } from '../setup/talk.ts'
import { userPart } from '../sip/caller-id.ts'
import { ringSource } from '../originate/ring-source.ts'
import { WaitingPhone } from '../originate/waiting-phone.ts'

export interface SourceDeps extends ReachDeps, TalkDeps {
  readonly calls: ActiveCalls
  readonly registrar: Pick<Registrar, 'extensionAt' | 'tenantOf' | 'contactsOf' | 'homeDomain'>
  readonly newUuid: () => string
}

export interface SourcePlan {
  readonly phones: readonly PhoneCandidate[]
  /** What they are told of the call. */
  readonly announced: Announced
  /** How long they ring. */
  readonly ringMs: number
  /** Finds whoever the phone that was picked up is to talk to. */
  readonly connect: (phone: WaitingPhone) => Promise<Outcome>
}

/** Resolves when the call is over and its record stored. */
export async function callFromSource(
  plan: SourcePlan,
  call: Call,
  deps: SourceDeps,
): Promise<void> {
  const end = await outcomeOf(plan, call, deps).catch((error: unknown): End => {
    deps.log('error', 'a call failed', { callUuid: call.start.callUuid, error })
    return { kind: 'refused', status: 500, reason: 'Server Internal Error', code: 'fault' }
  })
  // Whoever waits on the phone hears that it is over.
  call.stop(end)
  await store(call, end, deps)
}

async function outcomeOf(plan: SourcePlan, call: Call, deps: SourceDeps): Promise<End> {
  if (call.stopped) return call.stopped
  const source = await ringSource(plan.phones, plan.announced, plan.ringMs, call, deps)
  if (source.kind === 'over') return source.end
  const outcome = await plan.connect(new WaitingPhone(call, source, deps))
  return outcome.kind === 'answered' ? talk(call, outcome.ended, deps) : outcome.end
}

export function phonesOf(
  { domain, extension, tenantId }: ExtensionRecord,
  deps: Pick<SourceDeps, 'registrar'>,
): readonly PhoneCandidate[] {
  return deps.registrar.contactsOf(domain, extension).map(({ uri, routes, nextHop }) => ({
    ...{ kind: 'phone', uri, routes, nextHop, extension, domain, tenantId },
  }))
}

export interface SourceCall {
  readonly callUuid: string
  readonly destination: string
  /** What the called side is shown; undefined: the extension and its name. */
  readonly callerNumber: string | undefined
  readonly callerName: string | undefined
}

/** As an INVITE of the extension would be read. */
export function readSource(
  { callUuid, destination, callerNumber, callerName }: SourceCall,
  source: ExtensionRecord,
): Reading {
  const { extensionId, tenantId, customerId, domain, extension, displayName } = source
  const number = callerNumber ?? extension
  const name = callerName ?? (callerNumber === undefined ? displayName : '')
  return {
    origin: {
      ...{ kind: 'extension', extensionId, tenantId, customerId },
      ...{ domain, extension, displayName },
    },
    ...{ callUuid, callId: callUuid, domain },
    headers: {},
    body: undefined,
    from: { name, user: userPart(number), host: domain, number },
    callerNumber: number,
    callerName: name || null,
    calledNumber: destination,
    calledUser: userPart(destination),
    hopsLeft: 70,
  }
}

export function startOfSource(reading: Reading, startedAt: number): CallStart {
  const { callUuid, callId, callerNumber, callerName, calledNumber } = reading
  return {
    ...{ callUuid, callId, callerNumber, callerName, calledNumber, startedAt },
    ...{ sourceAddress: 'api', isOurs: true },
  }
}
