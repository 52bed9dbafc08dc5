/** Findings in what calls are sent to: nodes, gateways, registrations with carriers. */
import { plural, quoted } from '../../http/clean-text.ts'
import { stateIn, type ChangeEntry } from '../../changes/change-store.ts'
import { fieldsOf } from '../../changes/kinds.ts'
import { type Sample, samplesOf } from '../../reports/evidence.ts'
import { clockSecondsOf } from '../../instances/membership.ts'
import { nodeTargetId } from '../../resources/node-plan.ts'
import { changesTo } from './changes-in-force.ts'
import { findLowQuality } from './find-low-quality.ts'
import { isInactive, withoutCarrier } from './find-calls.ts'
import { changesBetween, downSince, visibleSets } from './state-history.ts'
import { trunksOf, type TrunkView } from './trunks.ts'
import type { AnomalyDeps, Finding, FindingKind, Span } from './finding.ts'
import { DAY_MS } from '../../../schema/clock.ts'
import type { NodeStatus, SetStatus } from '../../../schema/contracts/engine.ts'

/** Outages in a period of which several are no accident. */
const FLAPPING = 3
const MAX_CHANGES = 5_000

export async function findOutages(
  deps: AnomalyDeps,
  span: Span,
  kinds: ReadonlySet<FindingKind>,
): Promise<readonly Finding[]> {
  const nodes = kinds.has('node')
    ? [...(await nodeFindings(deps, span)), ...clockFindings(deps, span)]
    : []
  const trunks =
    kinds.has('trunk') || kinds.has('registration') ? await trunkFindings(deps, span) : []
  const low = kinds.has('trunk') ? findLowQuality(deps, span) : []
  return [...nodes, ...trunks.filter(({ kind }) => kinds.has(kind)), ...low]
}

/** Instances whose machine has another time than the database server. Of the platform alone. */
function clockFindings({ instances, tenantId }: AnomalyDeps, { from, before }: Span) {
  if (tenantId !== null) return []
  return instances.list().flatMap((instance): readonly Finding[] => {
    const seconds = clockSecondsOf(instance)
    if (seconds === 0 || instance.state === 'stopped') return []
    const side = seconds > 0 ? 'ahead of' : 'behind'
    return [
      {
        kind: 'node',
        severity: 'high',
        subject: `instance ${instance.name}`,
        what:
          `The clock of instance ${instance.name} is ${Math.abs(seconds)} s ${side} the database ` +
          'server.',
        firstAt: Math.max(from, Math.min(instance.startedAt, before - 1)),
        lastAt: before - 1,
        figures: { clock_difference_seconds: seconds },
        evidence: [],
        advice:
          'Synchronize the clock of the machine (NTP). Until then times in its log and in ' +
          'its records differ from those of other instances; registrations, sessions and ' +
          'requests between instances go by the server.',
        next: { tool: 'list_instances', arguments: {} },
        firstStep: null,
      },
    ]
  })
}

async function nodeFindings(deps: AnomalyDeps, span: Span): Promise<readonly Finding[]> {
  const sets = await visibleSets(deps, deps.tenantId)
  const downs = await outagesOf(deps, 'node', span)
  const out = sets.flatMap((set) =>
    set.nodes
      .filter(({ state }) => state === 'inactive')
      .map(({ destination }) => nodeTargetId(set.setId, destination)),
  )
  const byHand = await changesTo(
    deps,
    'dispatcher_node',
    out,
    (change) => stateIn(change.state_after) === 'inactive',
  )
  const findings: Finding[] = []
  for (const set of sets)
    for (const node of set.nodes) {
      const change = byHand.get(nodeTargetId(set.setId, node.destination))
      const outages = downs.get(node.nodeId)
      const finding = await nodeFinding(deps, { set, node, outages, change }, span)
      if (finding !== undefined) findings.push(finding)
    }
  return findings
}

interface Outages {
  count: number
  firstAt: number
  lastAt: number
  reason: string
}

/**
 * How often each was found out of service; an instance that sees the same counts for itself.
 */
async function outagesOf(
  { store, tenantId }: AnomalyDeps,
  kind: 'node' | 'gateway',
  span: Span,
): Promise<ReadonlyMap<number, Outages>> {
  const changes = await changesBetween({ store, tenantId }, kind, { ...span, limit: MAX_CHANGES })
  const byObserver = new Map<string, Outages & { readonly id: number }>()
  for (const { subject_id: id, observer, to_state, cause, at, reason } of changes) {
    if (to_state !== 'probing' || cause === 'operator' || cause === 'reload') continue
    const name = `${id} ${observer}`
    const known = byObserver.get(name) ?? { id, count: 0, firstAt: at, lastAt: at, reason }
    known.count += 1
    known.firstAt = Math.min(known.firstAt, at)
    byObserver.set(name, known)
  }
  const outages = new Map<number, Outages>()
  for (const { id, ...seen } of byObserver.values())
    if ((outages.get(id)?.count ?? 0) < seen.count) outages.set(id, seen)
  return outages
}

interface ExaminedNode {
  readonly set: SetStatus
  readonly node: NodeStatus
  readonly outages: Outages | undefined
  /** The change that took it out of service. */
  readonly change: ChangeEntry | undefined
}

async function nodeFinding(
  deps: AnomalyDeps,
  examined: ExaminedNode,
  { from, before }: Span,
): Promise<Finding | undefined> {
  const { set, node, outages, change } = examined
  const { destination, state } = node
  if (state === 'active' && (outages?.count ?? 0) < FLAPPING) return undefined
  const isOut = state !== 'active'
  const since = isOut ? await downSince(deps, 'node', node.nodeId) : undefined
  const others = set.nodes.filter((each) => each.state === 'active' && each.nodeId !== node.nodeId)
  const at =
    since?.at ?? (state === 'inactive' ? change?.at : undefined) ?? outages?.firstAt ?? from
  const shared = {
    subject: `node ${destination}`,
    firstAt: at,
    lastAt: isOut ? Math.max(at, before - 1) : (outages?.lastAt ?? at),
    figures: {
      active_nodes_of_set: others.length,
      live_calls: node.activeCalls,
      ...(outages && { outages: outages.count }),
    },
    next: { tool: 'get_node_history', arguments: { node: destination } },
  }
  const named = node.description === null ? '' : ` ${quoted(node.description)}`
  const subject = `node ${destination}${named} of set ${set.setId}`
  const remaining =
    `${plural(others.length, 'other node')} of the set ${others.length === 1 ? 'is' : 'are'} ` +
    'active'
  const described = { ...examined, since, at, others: others.length, shared, subject, remaining }
  return state === 'inactive' && (since === undefined || since.cause === 'operator')
    ? takenOutFinding(deps, described, before)
    : silentFinding(deps, described, before)
}

interface DescribedNode extends ExaminedNode {
  /** Undefined: the node is in service, or nothing says since when it is not. */
  readonly since: Awaited<ReturnType<typeof downSince>>
  readonly at: number
  /** How many other nodes of the set are active. */
  readonly others: number
  readonly shared: Pick<Finding, 'subject' | 'firstAt' | 'lastAt' | 'figures' | 'next'>
  readonly subject: string
  readonly remaining: string
}

/** The finding about a node that an operator has taken out of service. */
async function takenOutFinding(
  deps: AnomalyDeps,
  { set, node, change, at, others, shared, subject, remaining }: DescribedNode,
  before: number,
): Promise<Finding> {
  const who = change === undefined ? '' : ` ${byWhom(change)}`
  return {
    ...shared,
    kind: 'node',
    severity: others === 0 ? 'critical' : 'medium',
    what: `${subject} was taken out of service by hand at ${textOf(at)}${who}; ${remaining}.`,
    evidence: await callsOf(deps, set.setId, { from: at, before }),
    advice:
      'Ask the operator who took it out. After the maintenance, put it back into service ' +
      'with set_dispatcher_state.',
    firstStep: {
      tool: 'set_dispatcher_state',
      arguments: {
        setId: set.setId,
        destination: node.destination,
        state: 'active',
        reason: 'an operator took it out of service, and calls are refused without it',
      },
    },
    causedBy: change,
  }
}

/** The finding about a node that does not answer, now or several times in the period. */
async function silentFinding(
  deps: AnomalyDeps,
  { set, node, outages, change, since, at, others, shared, subject, remaining }: DescribedNode,
  before: number,
): Promise<Finding> {
  const { destination, state } = node
  const isOut = state !== 'active'
  const why = quoted(since?.reason ?? node.lastProbe?.reason ?? outages?.reason ?? '')
  const drained = state === 'inactive' ? ', and was then taken out by hand' : ''
  const times = plural(outages?.count ?? 0, 'time')
  return {
    ...shared,
    kind: 'node',
    severity: !isOut ? 'medium' : others === 0 ? 'critical' : 'high',
    what: isOut
      ? `${subject} has been out of service since ${textOf(at)}: ${why}${drained}; ${remaining}.`
      : `${subject} went out of service ${times} in the period: ${why}; ${remaining}.`,
    evidence: await callsTo(deps, destination, { from: at - SETUP_MS, before }),
    advice: `Check the machine and the network of the node: it does not answer OPTIONS or calls. ${
      others === 0
        ? 'The set has no other node in service: its calls are refused.'
        : 'If you take it out of service, callers do not wait for it: calls go to the other ' +
          'nodes at once.'
    }`,
    firstStep:
      others === 0 || state === 'inactive'
        ? null
        : {
            tool: 'set_dispatcher_state',
            arguments: {
              setId: set.setId,
              destination,
              state: 'inactive',
              duration: 3_600,
              reason: 'the node does not answer reliably',
            },
          },
    remedy: {
      kind: 'dispatcher_node',
      ids: [nodeTargetId(set.setId, destination)],
      fits: (after) => after === 'inactive',
      isState: true,
    },
    handledBy: state === 'inactive' ? change : undefined,
  }
}

const textOf = (ms: number): string => new Date(ms).toISOString()

/** Names are in `by` of the view, for those who may read the audit log. */
const byWhom = ({ change_id, expires_at }: ChangeEntry): string =>
  `by change ${change_id}${expires_at === null ? '' : `, until ${textOf(expires_at)}`}`

/** The call that finds a node dead began before. */
const SETUP_MS = 30_000
const SAMPLES = 5

const uuidsOf = (samples: readonly Sample[]): readonly string[] =>
  samples.map(({ call_uuid }) => call_uuid)

/** Calls that were sent to a destination. */
const callsTo = async (deps: AnomalyDeps, tried: string, window: Span) =>
  uuidsOf(await samplesOf(deps, window, { customerId: null, tried }, SAMPLES))

/** Calls of a set that its nodes did not take. */
const callsOf = async (deps: AnomalyDeps, setId: number, window: Span) =>
  uuidsOf(await samplesOf(deps, window, { customerId: null, setId, isUnanswered: true }, SAMPLES))

async function trunkFindings(deps: AnomalyDeps, span: Span): Promise<readonly Finding[]> {
  const { trunks } = await trunksOf(deps)
  const idle = trunks.filter(({ state }) => state === 'inactive')
  const byHand = await changesTo(
    deps,
    'carrier',
    idle.map(({ id }) => String(id)),
    (change) => fieldsOf(stateIn(change.state_after))?.['is_active'] === false,
  )
  const findings: Finding[] = []
  for (const trunk of trunks) {
    const change = byHand.get(String(trunk.id))
    const finding =
      trunk.state === 'down' || trunk.state === 'degraded'
        ? await troubledTrunk(deps, trunk, span)
        : change && idleTrunk(trunk, change, span)
    if (finding !== undefined) findings.push(finding)
  }
  return findings
}

async function troubledTrunk(
  deps: AnomalyDeps,
  trunk: TrunkView,
  { from, before }: Span,
): Promise<Finding> {
  const { id, name, registration, gateways, active_calls, state } = trunk
  const isUnregistered = registration?.state === 'failed'
  const down = gateways.filter((each) => each.state === 'down')
  const since = sinceOf(trunk) ?? from
  const why = isUnregistered ? registration.last_answer : (down[0]?.reason ?? null)
  const what = isUnregistered
    ? `the registration with carrier ${quoted(name)} has failed since ${textOf(since)}`
    : `${plural(down.length, 'gateway')} of carrier ${quoted(name)} out of service since ` +
      textOf(since)
  const wanted = { customerId: null, carrier: name, isUnanswered: true }
  const samples = await samplesOf(deps, { from: since - SETUP_MS, before }, wanted, SAMPLES)
  return {
    kind: isUnregistered ? 'registration' : 'trunk',
    severity: state === 'down' ? 'high' : 'medium',
    subject: `carrier ${quoted(name)}`,
    what: `${what}: ${quoted(why ?? 'no answer')}; ${plural(active_calls, 'live call')}.`,
    firstAt: since,
    lastAt: Math.max(since, before - 1),
    figures: { gateways_down: down.length, gateways: gateways.length, live_calls: active_calls },
    evidence: uuidsOf(samples),
    advice: isUnregistered
      ? 'Check the user name, the password and the registrar of the carrier, or ask the carrier.'
      : 'Ask the carrier, and check the network to its gateway; until it answers, let its ' +
        'calls take the next route.',
    firstStep: withoutCarrier(
      id,
      isUnregistered ? 'its registration fails' : 'its gateway is down',
    ),
    next: { tool: 'list_trunks', arguments: { search: name } },
    remedy: {
      kind: 'carrier',
      ids: [String(id)],
      fits: (after) => isInactive(after),
      isState: true,
    },
  }
}

/** A carrier that was taken out of service: for its trouble, or without any that is known. */
function idleTrunk(
  { id, name, last_failure: failure, active_calls: live_calls }: TrunkView,
  change: ChangeEntry,
  { from, before }: Span,
): Finding | undefined {
  const failedAt = failure === null ? undefined : Date.parse(failure.at)
  const isForTrouble =
    failedAt !== undefined && failedAt <= change.at && failedAt > change.at - TROUBLE_MS
  if (change.at < from) return undefined
  const since = isForTrouble ? failedAt : change.at
  const out =
    `${isForTrouble ? 'was then' : 'was'} taken out of service at ${textOf(change.at)} ` +
    byWhom(change)
  return {
    kind: failure?.what === 'registration' && isForTrouble ? 'registration' : 'trunk',
    severity: isForTrouble ? 'high' : 'medium',
    subject: `carrier ${quoted(name)}`,
    what: isForTrouble
      ? `${quoted(failure?.what ?? '')} of carrier ${quoted(name)} failed at ${textOf(since)}: ` +
        `${quoted(failure?.reason ?? '')}; the carrier ${out}.`
      : `carrier ${quoted(name)} ${out}.`,
    firstAt: since,
    lastAt: Math.max(since, before - 1),
    figures: { live_calls },
    evidence: [change.change_id],
    advice:
      'Put it back into service with set_trunk_state when it works again, or when you need it.',
    next: { tool: 'list_trunks', arguments: { search: name } },
    firstStep: isForTrouble
      ? null
      : {
          tool: 'set_trunk_state',
          arguments: {
            carrier: id,
            state: 'active',
            reason: 'it was taken out of service by hand',
          },
        },
    ...(isForTrouble ? { handledBy: change } : { causedBy: change }),
    remedy: { kind: 'carrier', ids: [], fits: () => undefined, isState: true },
  }
}

/** Trouble that is longer ago is not why a carrier was taken out. */
const TROUBLE_MS = DAY_MS

function sinceOf({ registration, gateways }: TrunkView): number | undefined {
  const times = [registration?.since, ...gateways.map(({ since }) => since)]
  const known = times.flatMap((time) => (time == null ? [] : [Date.parse(time)]))
  return known.length === 0 ? undefined : Math.min(...known)
}
