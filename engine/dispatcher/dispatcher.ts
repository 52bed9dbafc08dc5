/**
 * Chooses the backend node of a call: the facade over sets, probes and algorithms. Answers come
 * from snapshots in memory; the database is read at `reload` and written when an operator decides.
 */
import type { Every, Schedule } from '../../schema/clock.ts'
import type {
  NodeStatus,
  NamedNode,
  NodeState,
  SetStateResult,
  SetStatus,
} from '../../schema/contracts/engine.ts'
import type { SipTarget } from '../../schema/net/sip-target.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import { type AlgorithmCode, firstShares, type OrderedCall } from './algorithms.ts'
import {
  buildSet,
  type Candidate,
  type DestinationSet,
  entryOf,
  formatDestination,
  isSameDestination,
  type Node,
  parseDestination,
  type ProbeSettings,
  type SetRecord,
} from './destination-set.ts'
import type { HostDirectory } from './host-addresses.ts'
import type { OperatorState } from './node-health.ts'
import {
  type ProbedStateChange,
  type ProbedTarget,
  ProbedTargets,
  type ProbeReport,
} from './probed-targets.ts'
import { CallLimit, type SharedCounting } from '../shares/call-limit.ts'
import { NodeDirectory, type NodeReference } from './node-directory.ts'
import type { SendProbe } from './probe-loop.ts'

export interface DispatcherDeps {
  readonly loadSets: () => Promise<readonly SetRecord[]>
  readonly saveOperatorState: (nodeId: number, state: OperatorState) => Promise<boolean>
  /** Milliseconds UTC. */
  readonly now: () => number
  /** Uniform in [0, 1). */
  readonly random: () => number
  readonly schedule: Schedule
  /** Rounds of the process with which the first nodes are probed. */
  readonly every?: Every | undefined
  readonly sendProbe: SendProbe
  /** How long an answer may wait to be read here. Default: not at all. */
  readonly lagMs?: (() => number) | undefined
  /** Live calls on a node, counted at each call. */
  readonly activeCalls: (nodeId: number) => number
  /** Where other instances of the installation count against the same limits. */
  readonly shared?: SharedCounting | undefined
  readonly onNodeChange: (change: NodeChange) => void
  readonly probeDefaults: ProbeSettings
  readonly hosts: HostDirectory
}

export interface NodeChange extends Omit<ProbedStateChange, 'id'> {
  readonly nodeId: number
  readonly setId: number
  readonly destination: string
}

export class Dispatcher {
  readonly #deps: DispatcherDeps
  readonly #targets: ProbedTargets
  readonly #directory: NodeDirectory
  readonly #limit: CallLimit
  readonly #reloads: OneAtATime
  #sets: ReadonlyMap<number, DestinationSet> = new Map()
  #setOfNode: ReadonlyMap<number, number> = new Map()
  /** By set id: the first of each tenant, and the first common one. */
  #lowestSets: readonly Pick<SetRecord, 'setId' | 'tenantId'>[] = []
  /**
   * Calls ordered so far per set id (at most 65,535); survives snapshots, so that no node is
   * favoured by a rebuild.
   */
  readonly #turns = new Map<number, number>()

  constructor(deps: DispatcherDeps) {
    this.#deps = deps
    this.#directory = new NodeDirectory(deps.hosts)
    this.#limit = new CallLimit('node', deps.activeCalls, deps.shared)
    this.#targets = new ProbedTargets({
      now: deps.now,
      schedule: deps.schedule,
      every: deps.every,
      sendProbe: deps.sendProbe,
      lagMs: deps.lagMs,
      onChange: (change) => this.#onHealthChange(change),
    })
    this.#reloads = new OneAtATime(async () => this.replace(await deps.loadSets()))
  }

  /** Starts probing; before it (and without it) nodes keep the state they have. */
  start(): void {
    this.#targets.start()
  }

  stop(): void {
    this.#targets.stop()
  }

  /** Reads the sets anew: there are none before. */
  reload(): Promise<void> {
    return this.#reloads.request()
  }

  /** Nodes that stay keep probe state and counters; live calls are not touched. */
  replace(records: readonly SetRecord[]): void {
    this.#setOfNode = new Map(
      records.flatMap((set) => set.nodes.map((node) => [node.nodeId, set.setId] as const)),
    )
    const changes = this.#targets.watch(
      records.flatMap((set) => targetsOf(set, this.#deps.probeDefaults)),
    )
    this.#sets = new Map(records.map((record) => [record.setId, this.#build(record)]))
    this.#lowestSets = firstOfEach(records)
    this.#directory.replace(records)
    this.#limit.keepOnly(new Set(this.#setOfNode.keys()))
    this.noteCalls()
    for (const change of changes) this.#announce(change)
  }

  /**
   * The active nodes of a set in the order in which one call tries them, without the nodes that
   * have reached their `max_calls`. Empty: 503 `No Backend PBX Nodes Available`.
   */
  candidates(setId: number, callId: string): readonly Candidate[] {
    const set = this.#sets.get(setId)
    if (!set) return []
    const turn = this.#turns.get(setId) ?? 0
    this.#turns.set(setId, turn + 1)
    return this.#inOrder(set, { turn, callId, random: this.#deps.random })
  }

  /** The candidates of the next call, without taking its turn. */
  foreseen(setId: number, callId: string, random: () => number): readonly Candidate[] {
    const set = this.#sets.get(setId)
    const turn = this.#turns.get(setId) ?? 0
    return set ? this.#inOrder(set, { turn, callId, random }) : []
  }

  /**
   * The share of calls that each node of a set would get first now, and the reason why others get
   * none.
   */
  selection(setId: number): readonly SelectedNode[] {
    const set = this.#sets.get(setId)
    return set ? selectionOf(set, (node) => this.#isFull(node)) : []
  }

  #inOrder(set: DestinationSet, call: OrderedCall): readonly Candidate[] {
    const candidates: Candidate[] = []
    for (const node of set.order(call)) if (!this.#isFull(node)) candidates.push(node.candidate)
    return candidates
  }

  #isFull({ record: { maxCalls, nodeId } }: Node): boolean {
    return this.#limit.isReached(nodeId, maxCalls)
  }

  /**
   * Asked before each attempt: false when the node has reached its `max_calls`; else the call is to
   * be counted there in this turn.
   */
  admitCall(nodeId: number): boolean | Promise<boolean> {
    const { nodes = [] } = this.#setOf(nodeId) ?? {}
    const node = nodes.find(({ record }) => record.nodeId === nodeId)
    return this.#limit.admit(nodeId, node?.record.maxCalls ?? 0)
  }

  /** The live calls of nodes are counted without being asked for, such as those of the last run. */
  noteCalls(): void {
    for (const { nodes } of this.#sets.values())
      for (const { record } of nodes) this.#limit.note(record.nodeId, record.maxCalls)
  }

  /** Whether active nodes exist but all have reached `max_calls`: 503 with `Retry-After`. */
  isAtCapacity(setId: number): boolean {
    const active = this.#sets.get(setId)?.nodes.filter((node) => node.state === 'active') ?? []
    return active.length > 0 && active.every((node) => this.#isFull(node))
  }

  /**
   * The voicemail of a tenant's PBX: of the tenant's own sets before common ones, the lowest set id
   * first.
   */
  voicemailOf(tenantId: number): string | undefined {
    const records = [...this.#sets.values()]
      .map(({ record }) => record)
      .filter(({ voicemailUri }) => voicemailUri !== null)
      .toSorted((a, b) => a.setId - b.setId)
    const own = records.find((record) => record.tenantId === tenantId)
    const common = records.find((record) => record.tenantId === null)
    return (own ?? common)?.voicemailUri ?? undefined
  }

  /**
   * The set that takes calls no route speaks for: the lowest set id among the common ones, and the
   * tenant's own where the caller or who pays is a tenant's.
   */
  defaultSetId(tenantId: number | null): number | undefined {
    return this.#lowestSets.find((set) => set.tenantId === null || set.tenantId === tenantId)?.setId
  }

  /** The record of a set: tenant, voicemail and spy address. */
  setRecord(setId: number): SetRecord | undefined {
    return this.#sets.get(setId)?.record
  }

  /** Sets by their number or endpoint name, in any case; several tenants may have one of a name. */
  setsNamed(wanted: number | string): readonly SetRecord[] {
    if (typeof wanted === 'number') {
      const record = this.setRecord(wanted)
      return record === undefined ? [] : [record]
    }
    const name = wanted.toLowerCase()
    const records = [...this.#sets.values()].map(({ record }) => record)
    return records.filter((record) => record.name.toLowerCase() === name)
  }

  /** Number of the set of a node. */
  setOfNode(nodeId: number): number | undefined {
    return this.#setOfNode.get(nodeId)
  }

  /**
   * The node that sends from this address and port, the platform's before tenants'; see
   * `NodeDirectory`.
   */
  nodeAt(address: string, port: number): NodeReference | undefined {
    return this.#directory.nodeAt(address, port)
  }

  /** The node that an application calls by its address; see `NodeDirectory`. */
  nodeCalled(called: SipTarget, tenantId: number | null): NodeReference | undefined {
    return this.#directory.nodeCalled(called, tenantId)
  }

  /**
   * The result of a live INVITE to a node (SPECIFICATION.md §10.4): silence, 503 or transport error
   * is `failed`.
   */
  reportOutcome(nodeId: number, outcome: 'answered' | 'failed'): void {
    this.#targets.reportCall(nodeId, outcome)
  }

  /** One entry per set, or only that of `setId`; empty when there is no such set. */
  status(setId?: number): readonly SetReport[] {
    const sets = [...this.#sets.values()].filter(
      (set) => setId === undefined || set.record.setId === setId,
    )
    return sets.map((set) =>
      describeSet(set, (nodeId) => this.#targets.report(nodeId), this.#deps.activeCalls),
    )
  }

  /**
   * An operator's decision (SPECIFICATION.md §3.2). `inactive` blocks new INVITEs until an operator
   * ends it, restarts included; `probing` lets the probes decide when the node comes back.
   *
   * @param by the operator, for the history of the node.
   */
  setState(
    setId: number,
    destination: string,
    state: NodeState,
    by?: string,
  ): Promise<SetStateResult> {
    // One decision after the other: of two nodes one stays in service, and each load sees the
    // stored decision.
    return this.#reloads.between(() => this.#setState(setId, destination, state, by))
  }

  async #setState(
    setId: number,
    destination: string,
    state: NodeState,
    by?: string,
  ): Promise<SetStateResult> {
    const set = this.#sets.get(setId)
    if (!set) return 'unknown_set'
    const nodeId = idOf(set, destination)
    if (nodeId === undefined) return 'unknown_destination'
    if (!maySetState(this.#nodesInSet(set), nodeId, state)) return 'last_active_node'
    const isSaved = await this.#deps.saveOperatorState(
      nodeId,
      state === 'inactive' ? 'inactive' : 'active',
    )
    if (!isSaved) return 'last_active_node'
    this.#targets.setState(nodeId, state, by)
    return 'changed'
  }

  /** The node that an operator names as for `setState`. */
  find(setId: number, destination: string): NamedNode | undefined {
    const set = this.#sets.get(setId)
    const nodeId = set && idOf(set, destination)
    const node = this.status(setId)[0]?.nodes.find((each) => each.nodeId === nodeId)
    return node && { ...node, isLastInService: this.isLastInService(node.nodeId) }
  }

  /**
   * Whether removing this node would leave its set without a node in service (SPECIFICATION.md
   * §3.2: 409).
   */
  isLastInService(nodeId: number): boolean {
    const set = this.#setOf(nodeId)
    return set !== undefined && isLastInService(this.#nodesInSet(set), nodeId)
  }

  /** A node that cannot come back by itself, because DNS does not know its name. */
  isUnresolvable(nodeId: number): boolean {
    const node = this.#setOf(nodeId)?.nodes.find(({ record }) => record.nodeId === nodeId)
    return node?.state === 'probing' && this.#deps.hosts.isUnresolvable(node.record.host)
  }

  #nodesInSet({ nodes }: DestinationSet) {
    return nodes.map(({ record: { nodeId, host }, state }) => ({
      nodeId,
      state,
      isUnresolvable: this.#deps.hosts.isUnresolvable(host),
    }))
  }

  #build(record: SetRecord): DestinationSet {
    return buildSet(record, (nodeId) => this.#targets.stateOf(nodeId) ?? 'active')
  }

  #onHealthChange(change: ProbedStateChange): void {
    const set = this.#setOf(change.id)
    if (!set) return
    this.#sets = new Map(this.#sets).set(set.record.setId, this.#build(set.record))
    this.#announce(change)
  }

  #announce({ id: nodeId, ...change }: ProbedStateChange): void {
    const set = this.#setOf(nodeId)
    const node = set?.nodes.find(({ record }) => record.nodeId === nodeId)
    if (!set || !node) return
    const { setId } = set.record
    this.#deps.onNodeChange({ nodeId, setId, destination: node.destination, ...change })
  }

  #setOf(nodeId: number): DestinationSet | undefined {
    const setId = this.#setOfNode.get(nodeId)
    return setId === undefined ? undefined : this.#sets.get(setId)
  }
}

function idOf({ nodes }: DestinationSet, destination: string): number | undefined {
  const wanted = parseDestination(destination)
  return wanted && nodes.find(({ record }) => isSameDestination(record, wanted))?.record.nodeId
}

function targetsOf(set: SetRecord, defaults: ProbeSettings): ProbedTarget[] {
  const settings = { ...defaults, ...set.probe }
  return set.nodes.map((node) => ({
    id: node.nodeId,
    destination: formatDestination(node),
    settings: { ...settings, timeoutMs: Math.min(settings.timeoutMs, settings.intervalMs) },
    operatorState: node.operatorState,
  }))
}

function firstOfEach(records: readonly SetRecord[]): readonly SetRecord[] {
  const tenants = new Set<number | null>()
  return records
    .toSorted((one, other) => one.setId - other.setId)
    .filter(({ tenantId }) => !tenants.has(tenantId) && tenants.add(tenantId))
}

/** A node for the last-node rule of SPECIFICATION.md §3.2. */
interface NodeInSet {
  readonly nodeId: number
  readonly state: NodeState
  /** DNS does not know its name: it will not come back by itself. */
  readonly isUnresolvable?: boolean
}

/**
 * Whether taking this node out (maintenance, removal) would leave no node in service. A `probing`
 * node is in service: it comes back by itself, unless DNS does not know its name. A node in
 * maintenance can never be the last one.
 */
export function isLastInService(nodes: readonly NodeInSet[], nodeId: number): boolean {
  const inService = nodes.filter(({ state, isUnresolvable }) => {
    return state === 'active' || (state === 'probing' && isUnresolvable !== true)
  })
  return inService.length === 1 && inService[0]?.nodeId === nodeId
}

/** Only maintenance can be refused; `active` and `probing` are always allowed. */
export function maySetState(
  nodes: readonly NodeInSet[],
  nodeId: number,
  state: NodeState,
): boolean {
  return state !== 'inactive' || !isLastInService(nodes, nodeId)
}

/** The status for the API, with more for operators and tests. */
interface SetReport extends SetStatus {
  readonly name: string
  readonly tenantId: number | null
  readonly algorithm: AlgorithmCode
  readonly totalNodes: number
  readonly activeNodes: number
  readonly probingNodes: number
  readonly inactiveNodes: number
  readonly nodes: readonly NodeReport[]
}

interface NodeReport extends NodeStatus {
  /** 0: unlimited. */
  readonly maxCalls: number
  /** Consecutive failures and successes. */
  readonly failures: number
  readonly successes: number
}

function describeSet(
  { record, nodes }: DestinationSet,
  reportOf: (nodeId: number) => ProbeReport | undefined,
  activeCalls: (nodeId: number) => number,
): SetReport {
  const count = (state: NodeState) => nodes.filter((node) => node.state === state).length
  return {
    setId: record.setId,
    name: record.name,
    tenantId: record.tenantId,
    algorithm: record.algorithm,
    totalNodes: nodes.length,
    activeNodes: count('active'),
    probingNodes: count('probing'),
    inactiveNodes: count('inactive'),
    nodes: nodes.map((node) =>
      describeNode(node, reportOf(node.record.nodeId), activeCalls(node.record.nodeId)),
    ),
  }
}

function describeNode(
  { record, destination, state }: Node,
  report: ProbeReport | undefined,
  activeCalls: number,
): NodeReport {
  const latencyMs = report?.latencyMs
  return {
    nodeId: record.nodeId,
    destination,
    state,
    priority: record.priority,
    weight: record.weight,
    latencyMs: latencyMs === undefined ? null : Math.round(latencyMs * 10) / 10,
    description: record.description,
    activeCalls,
    maxCalls: record.maxCalls,
    lastProbe: report?.lastProbe ?? null,
    failures: report?.failures ?? 0,
    successes: report?.successes ?? 0,
    probes: report?.probes ?? { sent: 0, answered: 0, failed: 0 },
  }
}

/** A node that takes no calls now, and why. */
type NodeRefusal = 'drained' | 'out_of_service' | 'node_limit'

interface SelectedNode {
  readonly nodeId: number
  readonly destination: string
  readonly weight: number
  readonly priority: number
  /** Null: it takes calls. */
  readonly why: NodeRefusal | null
  /** The part of many calls that is sent to this node first; 0 to 1. */
  readonly share: number
}

function selectionOf(
  { record, nodes }: DestinationSet,
  isFull: (node: Node) => boolean,
): readonly SelectedNode[] {
  const judged = nodes.map((node) => ({ node, why: refusalOf(node, isFull) }))
  const takers = judged.flatMap(({ node, why }) => (why === null ? [node] : []))
  const shares = firstShares(record.algorithm, takers.map(entryOf))
  return judged.map(({ node, why }) => {
    const { nodeId, weight, priority } = node.record
    const share = shares.get(node) ?? 0
    return { nodeId, destination: node.destination, weight, priority, why, share }
  })
}

function refusalOf(node: Node, isFull: (node: Node) => boolean): NodeRefusal | null {
  switch (node.state) {
    case 'inactive':
      return 'drained'
    case 'probing':
      return 'out_of_service'
    case 'active':
    default:
      return isFull(node) ? 'node_limit' : null
  }
}
