/** The nodes of all dispatcher sets: taken out of service, and taken back. */
import { useSignal } from '@preact/signals'
import { get, getAll, send } from '../api/api.ts'
import type { DispatcherNode, DispatcherSet, NodeHistory } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { may } from '../api/session.ts'
import { Dialog } from '../parts/dialog.tsx'
import { figureText, unitText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Sparkline } from '../parts/sparkline.tsx'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Moment, Problem, Text } from '../parts/text.tsx'
import { isLastInService, nodeState, placeOf } from './node-state.ts'

const REFRESH_MS = 2_000
/** The server takes a value every five seconds. */
const HISTORY_MS = 10_000

interface Row {
  readonly set: DispatcherSet
  readonly node: DispatcherNode
  readonly latencies: readonly (number | null)[]
}

const columns: readonly ShownColumn<Row>[] = [
  {
    name: 'node',
    title: 'Node',
    value: ({ node }) => node.destination,
    show: ({ node }) => (
      <>
        <Text value={node.destination} max={80} />{' '}
        <small>{node.description !== null && <Text value={node.description} max={60} />}</small>
      </>
    ),
  },
  {
    name: 'state',
    title: 'State',
    value: ({ node }) => nodeState(node)[1],
    show: ({ node }) => <NodeState node={node} />,
  },
  {
    name: 'calls',
    title: 'Calls',
    value: ({ node }) => node.status?.active_calls ?? null,
    isFigure: true,
    show: ({ node }) => <NodeCalls node={node} />,
  },
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
  {
    name: 'set',
    title: 'Set',
    value: ({ set }) => `${set.endpoint_name} ${set.set_id}`,
    isMinor: true,
    show: ({ set }) => (
      <>
        <Text value={set.endpoint_name} max={40} /> <small>set {set.set_id}</small>
      </>
    ),
  },
  {
    name: 'probe',
    title: 'Last probe',
    value: ({ node }) => node.status?.last_probe?.at ?? null,
    isMinor: true,
    show: ({ node }) => <LastProbe node={node} />,
  },
]

export function NodesScreen() {
  const sets = useResource('nodes', () => getAll<DispatcherSet>('/dispatcher'), {
    everyMs: REFRESH_MS,
    events: /^node\./,
  })
  const history = useResource('latencies', () => get<NodeHistory>('/metrics/nodes'), {
    everyMs: HISTORY_MS,
  })
  const asked = useSignal<Row | undefined>(undefined)
  const latencies = new Map(
    history.data.value?.nodes.map(({ node_id: id, latencies_ms: values }) => [id, values]),
  )
  const rows = sets.data.value?.rows.flatMap((set) =>
    set.nodes.map((node) => ({ set, node, latencies: latencies.get(node.id) ?? [] })),
  )
  const actions: ShownColumn<Row> = {
    name: 'actions',
    title: 'Actions',
    value: () => null,
    show: (row) => <StateButton row={row} onAsk={() => (asked.value = row)} />,
  }
  return (
    <>
      <Problem message={sets.problem.value ?? history.problem.value} />
      <p>
        A drained node gets no new calls; those that it has go on. When it says “it may be stopped”,
        none is left. The last node of a set that is not drained stays, whether it answers or not:
        calls to the set would have nowhere to go.
      </p>
      <Table
        label="Nodes"
        rows={rows ?? []}
        columns={may('dispatcher:write') ? [...columns, actions] : columns}
        keyOf={({ node }) => node.id}
        empty={rows === undefined ? 'Loading …' : 'No dispatcher set is configured.'}
      />
      {asked.value !== undefined && (
        <StateDialog
          row={asked.value}
          onClose={() => {
            asked.value = undefined
            sets.reload()
          }}
        />
      )}
    </>
  )
}

function NodeState({ node }: { node: DispatcherNode }) {
  const [tone, text] = nodeState(node)
  return <Badge tone={tone}>{text}</Badge>
}

function NodeCalls({ node }: { node: DispatcherNode }) {
  const count = node.status?.active_calls ?? 0
  if (count === 0 || !may('calls:read')) return <>{figureText(node.status?.active_calls)}</>
  return <a href={pathOf('calls', undefined, { q: placeOf(node) })}>{figureText(count)}</a>
}

function LastProbe({ node }: { node: DispatcherNode }) {
  const probe = node.status?.last_probe
  if (probe == null) return <>none yet</>
  return (
    <>
      {probe.status === 0 ? '' : `${probe.status} `}
      <Text value={probe.reason} max={40} />, <Moment at={probe.at} isToday />
    </>
  )
}

const isDrained = (node: DispatcherNode): boolean => node.operator_state === 'inactive'

function StateButton({ row: { node }, onAsk }: { row: Row; onAsk: () => void }) {
  if (!node.is_enabled) return null
  const text = isDrained(node) ? 'Take back' : 'Drain'
  return (
    <button type="button" onClick={onAsk} aria-label={`${text} ${node.destination}`}>
      {text}
    </button>
  )
}

function StateDialog({ row: { set, node }, onClose }: { row: Row; onClose: () => void }) {
  const drains = !isDrained(node)
  return (
    <Dialog
      title={drains ? 'Drain this node?' : 'Take this node back?'}
      action={drains ? 'Drain' : 'Take back'}
      onConfirm={async () => {
        const path = `/dispatcher/${set.id}/nodes/${node.id}/state`
        const answer = await send('PUT', path, { state: drains ? 'inactive' : 'active' })
        if (answer.kind !== 'failed' || answer.code !== 'last_active_node') return answer
        return { ...answer, message: lastNodeText }
      }}
      onClose={onClose}
    >
      <p>
        <Text value={node.destination} max={80} />
      </p>
      <p>
        {drains
          ? `It gets no new calls. Its ${node.status?.active_calls ?? 0} calls go on until they end; when none is left, it may be stopped.`
          : 'It gets new calls again as soon as it answers probes.'}
      </p>
      {drains && isLastInService(set, node) && (
        <p class="notice">
          All other nodes of this set are drained or disabled, so this one has to stay.
        </p>
      )}
    </Dialog>
  )
}

const lastNodeText =
  'This is the last node in service of its set: without it, calls to the set would be refused. ' +
  'Take another node back first.'
