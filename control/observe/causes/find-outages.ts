/** Findings in what calls are sent to: nodes, gateways, registrations with carriers. */
import { plural, quoted } from '../../http/clean-text.ts'
import { changesBetween, downSince, visibleSets } from './state-history.ts'
import { trunksOf, type TrunkView } from './trunks.ts'
import type { AnomalyDeps, Finding, Kind, Span } from './finding.ts'
import type { NodeStatus, SetStatus } from '../../../schema/contracts/engine.ts'

/** Outages in a period of which several are no accident. */
const FLAPPING = 3
const MAX_CHANGES = 5_000

export async function findOutages(
  deps: AnomalyDeps,
  span: Span,
  kinds: ReadonlySet<Kind>,
): Promise<readonly Finding[]> {
  const nodes = kinds.has('node') ? await nodeFindings(deps, span) : []
  const trunks =
    kinds.has('trunk') || kinds.has('registration') ? await trunkFindings(deps, span) : []
  return [...nodes, ...trunks.filter(({ kind }) => kinds.has(kind))]
}

async function nodeFindings(deps: AnomalyDeps, span: Span): Promise<readonly Finding[]> {
  const sets = await visibleSets(deps, deps.tenantId)
  const downs = await outagesOf(deps, 'node', span)
  const findings: Finding[] = []
  for (const set of sets)
    for (const node of set.nodes) {
      const finding = await nodeFinding(deps, { set, node, outages: downs.get(node.nodeId) }, span)
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

/** How often each was found out of service; a node of the platform that sees the same counts for itself. */
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

async function nodeFinding(
  { store, tenantId }: AnomalyDeps,
  {
    set,
    node,
    outages,
  }: {
    readonly set: SetStatus
    readonly node: NodeStatus
    readonly outages: Outages | undefined
  },
  { from, before }: Span,
): Promise<Finding | undefined> {
  const isDown = node.state === 'probing'
  if (!isDown && (outages?.count ?? 0) < FLAPPING) return undefined
  const since = isDown ? await downSince({ store, tenantId }, 'node', node.nodeId) : undefined
  const others = set.nodes.filter(
    ({ state, nodeId }) => state === 'active' && nodeId !== node.nodeId,
  )
  const subject = `node ${node.destination} of set ${set.setId}`
  const remaining = `${plural(others.length, 'other node')} of the set ${others.length === 1 ? 'is' : 'are'} active`
  const why = since?.reason ?? node.lastProbe?.reason ?? outages?.reason ?? ''
  const at = since?.at ?? outages?.firstAt ?? from
  return {
    kind: 'node',
    severity: !isDown ? 'medium' : others.length === 0 ? 'critical' : 'high',
    subject: `node ${node.destination}`,
    what: isDown
      ? `${subject} is out of service since ${new Date(at).toISOString()}: ${quoted(why)}; ${remaining}.`
      : `${subject} went out of service ${plural(outages?.count ?? 0, 'time')} in the period: ${quoted(why)}; ${remaining}.`,
    firstAt: at,
    lastAt: isDown ? Math.max(at, before - 1) : (outages?.lastAt ?? at),
    evidence: [],
    next: { tool: 'get_node_history', arguments: { node: node.destination } },
    firstStep:
      others.length === 0
        ? null
        : {
            tool: 'set_dispatcher_state',
            arguments: {
              setId: set.setId,
              destination: node.destination,
              state: 'inactive',
              duration: 3_600,
              reason: 'the node does not answer reliably',
            },
          },
  }
}

async function trunkFindings(deps: AnomalyDeps, { from, before }: Span) {
  const { trunks } = await trunksOf(deps, undefined, true)
  return trunks.map((trunk): Finding => {
    const { name, registration, gateways, active_calls, state } = trunk
    const isUnregistered = registration?.state === 'failed'
    const down = gateways.filter((each) => each.state === 'down')
    const since = sinceOf(trunk) ?? from
    const why = isUnregistered ? registration.last_answer : (down[0]?.reason ?? null)
    const what = isUnregistered
      ? `the registration with carrier ${quoted(name)} has failed since ${new Date(since).toISOString()}`
      : `${plural(down.length, 'gateway')} of carrier ${quoted(name)} out of service since ${new Date(since).toISOString()}`
    return {
      kind: isUnregistered ? 'registration' : 'trunk',
      severity: state === 'down' ? 'high' : 'medium',
      subject: `carrier ${quoted(name)}`,
      what: `${what}: ${quoted(why ?? 'no answer')}; ${plural(active_calls, 'live call')}.`,
      firstAt: since,
      lastAt: Math.max(since, before - 1),
      evidence: [],
      firstStep: null,
      next: { tool: 'list_trunks', arguments: { search: name } },
    }
  })
}

function sinceOf({ registration, gateways }: TrunkView): number | undefined {
  const times = [registration?.since, ...gateways.map(({ since }) => since)]
  const known = times.flatMap((time) => (time == null ? [] : [Date.parse(time)]))
  return known.length === 0 ? undefined : Math.min(...known)
}
