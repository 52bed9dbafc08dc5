/** The nodes of all dispatcher sets: taken out of service, and taken back. */
import { getAll, send } from '../api/api.ts'
import type { DispatcherNode, DispatcherSet, NodeHistory } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { may } from '../api/session.ts'
import { Sparkline } from '../parts/chart.tsx'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { figureText, plural, unitText } from '../parts/format.ts'
import { List, type Action } from '../parts/list.tsx'
import type { ManyRows } from '../parts/many-action.ts'
import { useResource, useView } from '../parts/resource.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Moment, Text } from '../parts/text.tsx'
import { isLastInService, nodeState, nodeTitle, placeOf } from './node-state.ts'

const REFRESH_MS = 2_000
/** The server takes a value every five seconds. */
const HISTORY_MS = 10_000

export interface NodeRow {
  readonly set: DispatcherSet
  readonly node: DispatcherNode
  readonly latencies: readonly (number | null)[]
}

const columns: readonly ShownColumn<NodeRow>[] = [
  textColumn('node', 'Node', ({ node }) => node.destination, {
    also: ({ node }) => node.description,
    show: ({ node }) => (
      <a href={pathOf('nodes', `${node.id}`)}>
        <Text value={nodeTitle(node)} max={80} />
      </a>
    ),
    second: ({ node }) => <Text value={node.destination} max={80} />,
  }),
  textColumn('state', 'State', ({ node }) => nodeState(node)[1], {
    tone: ({ node }) => nodeState(node)[0],
    second: ({ node }) => (
      <>
        probe: <LastProbe node={node} />
      </>
    ),
  }),
  figureColumn('calls', 'Calls', ({ node }) => node.status?.active_calls ?? null, {
    show: ({ node }) => <NodeCalls node={node} />,
  }),
  {
    name: 'latency',
    title: 'Latency, 10 min',
    value: ({ node }) => node.status?.latency_ms ?? null,
    show: ({ node, latencies }) => (
      <>
        <Sparkline values={latencies} /> {unitText(node.status?.latency_ms, 'ms')}
      </>
    ),
  },
  textColumn('set', 'Set', ({ set }) => `${set.endpoint_name} ${set.set_id}`, {
    isMinor: true,
    show: ({ set }) => <Text value={set.endpoint_name} max={40} />,
    second: ({ set }) => `set ${set.set_id}`,
  }),
]

export function NodesScreen() {
  const sets = useResource('nodes', () => getAll<DispatcherSet>('/dispatcher'), {
    everyMs: REFRESH_MS,
    events: /^node\./,
  })
  const history = useView<NodeHistory>('/metrics/nodes', { everyMs: HISTORY_MS })
  const latencies = new Map(
    history.data.value?.nodes.map(({ node_id: id, latencies_ms: values }) => [id, values]),
  )
  const rows = sets.data.value?.rows.flatMap((set) =>
    set.nodes.map((node) => ({ set, node, latencies: latencies.get(node.id) ?? [] })),
  )
  return (
    <List
      label="Nodes"
      rows={rows}
      columns={columns}
      keyOf={({ node }) => node.id}
      empty="No dispatcher set is configured."
      problem={sets.problem.value ?? history.problem.value}
      reload={sets.reload}
      isWritable={may('dispatcher:write')}
      nameOf={({ node }) => node.destination}
      many={manyNodes}
      actions={actionsOf}
      about={
        <p>
          A drained node gets no new calls, and its live calls continue. When it says “it may be
          stopped”, none is left. Nodes are added and removed in their{' '}
          <a href={pathOf('dispatcher-sets')}>dispatcher sets</a>.
        </p>
      }
    />
  )
}

export function NodeCalls({ node }: { node: DispatcherNode }) {
  const count = node.status?.active_calls ?? 0
  if (count === 0 || !may('calls:read')) return <>{figureText(node.status?.active_calls)}</>
  return <a href={pathOf('calls', undefined, { q: placeOf(node) })}>{figureText(count)}</a>
}

export function LastProbe({ node }: { node: DispatcherNode }) {
  const probe = node.status?.last_probe
  if (probe == null) return <>none yet</>
  return (
    <>
      {probe.status === 0 ? '' : `${probe.status} `}
      <Text value={probe.reason} max={40} />, <Moment at={probe.at} isToday />
    </>
  )
}

type PlacedNode = Pick<NodeRow, 'set' | 'node'>

async function setState({ set, node }: PlacedNode, state: 'active' | 'inactive') {
  const answer = await send('PUT', `/dispatcher/${set.id}/nodes/${node.id}/state`, { state })
  if (answer.kind !== 'failed' || answer.code !== 'last_active_node') return answer
  return { ...answer, message: lastNodeText, headline: lastNodeText }
}

/** Those that are so already, or are not in use at all, are left out. */
const sparedNodes =
  (isDrained: boolean, why: string) =>
  (rows: readonly NodeRow[]): Promise<ReadonlyMap<NodeRow, string>> =>
    Promise.resolve(
      new Map(
        rows.flatMap((row): [NodeRow, string][] => {
          if (!row.node.is_enabled) return [[row, 'it is not in use']]
          return (row.node.operator_state === 'inactive') === isDrained ? [[row, why]] : []
        }),
      ),
    )

const manyNodes: ManyRows<NodeRow> = {
  one: 'node',
  many: 'nodes',
  actions: [
    {
      text: 'Drain',
      done: 'drained',
      effect: 'they get no new calls, and their live calls continue.',
      spared: sparedNodes(true, 'it is drained already'),
      send: (row) => setState(row, 'inactive'),
    },
    {
      text: 'Take back',
      done: 'taken back',
      effect: 'they get new calls again as soon as they answer probes.',
      spared: sparedNodes(false, 'it is in service'),
      send: (row) => setState(row, 'active'),
    },
  ],
}

export function actionsOf({ set, node }: PlacedNode): readonly Action[] {
  if (!node.is_enabled) return []
  const drains = node.operator_state !== 'inactive'
  return [
    {
      text: drains ? 'Drain' : 'Take back',
      title: drains ? 'Drain this node?' : 'Take this node back?',
      ask: (
        <>
          <p>
            <Text value={node.destination} max={80} />
          </p>
          <p>
            {drains
              ? 'It gets no new calls. It has ' +
                `${plural(node.status?.active_calls ?? 0, 'live call')}, and may be stopped ` +
                'when none is left.'
              : 'It gets new calls again as soon as it answers probes.'}
          </p>
          {drains && isLastInService(set, node) && (
            <p class="notice">
              All other nodes of this set are drained or disabled, so this one has to stay.
            </p>
          )}
        </>
      ),
      onConfirm: () => setState({ set, node }, drains ? 'inactive' : 'active'),
    },
  ]
}

const lastNodeText =
  'This is the last node in service of its set: without it, calls to the set would be refused. ' +
  'Take another node back first.'
