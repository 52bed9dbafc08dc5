/** Dispatcher sets and their nodes: taken out of service, and taken back. */
import { useSignal, type Signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { get, send } from '../api/api.ts'
import type { DispatcherNode, DispatcherSet } from '../api/api-types.ts'
import { may } from '../app/session.ts'
import { Dialog } from '../parts/dialog.tsx'
import { figureText, unitText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Sparkline } from '../parts/sparkline.tsx'
import { Badge, Moment, Problem, Text } from '../parts/text.tsx'
import { nodeState } from './node-state.ts'

const REFRESH_MS = 2_000
/** Values of a sparkline: two minutes. */
const HISTORY = 60
/** The most that the API gives. */
const MAX_SETS = 200

type Latencies = ReadonlyMap<number, readonly (number | null)[]>

interface Change {
  readonly set: DispatcherSet
  readonly node: DispatcherNode
  readonly to: 'active' | 'inactive'
}

export function NodesScreen() {
  const sets = useResource('nodes', () => get<DispatcherSet[]>(`/dispatcher?limit=${MAX_SETS}`), {
    everyMs: REFRESH_MS,
    events: /^node\./,
  })
  const latencies = useSignal<Latencies>(new Map())
  const asked = useSignal<Change | undefined>(undefined)
  const shown = sets.data.value
  useEffect(() => {
    if (shown !== undefined) latencies.value = withLatest(latencies.peek(), shown)
  }, [shown])
  return (
    <>
      <Problem message={sets.problem.value} />
      {shown?.length === 0 && <p class="empty">No dispatcher set is configured.</p>}
      {shown?.map((set) => (
        <SetTable key={set.id} set={set} latencies={latencies.value} asked={asked} />
      ))}
      {asked.value !== undefined && (
        <StateDialog
          change={asked.value}
          onClose={() => {
            asked.value = undefined
            sets.reload()
          }}
        />
      )}
    </>
  )
}

/** Nodes that are gone are dropped with their values. */
const withLatest = (known: Latencies, sets: readonly DispatcherSet[]): Latencies =>
  new Map(
    sets.flatMap(({ nodes }) =>
      nodes.map((node) => {
        const values = [...(known.get(node.id) ?? []), node.status?.latency_ms ?? null]
        return [node.id, values.slice(-HISTORY)] as const
      }),
    ),
  )

interface SetTableProps {
  readonly set: DispatcherSet
  readonly latencies: Latencies
  readonly asked: Signal<Change | undefined>
}

function SetTable({ set, latencies, asked }: SetTableProps) {
  const id = `set-${set.id}`
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>
        <Text value={set.endpoint_name} /> <small>set {set.set_id}</small>
      </h2>
      <div class="wide" tabIndex={0} role="group" aria-label={`Nodes of set ${set.set_id}, table`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">State</th>
              <th scope="col">Latency</th>
              <th scope="col" class="figure">
                Calls
              </th>
              <th scope="col" class="minor">
                Last probe
              </th>
              {may('dispatcher:write') && <th scope="col">Actions</th>}
            </tr>
          </thead>
          <tbody>
            {set.nodes.map((node) => (
              <tr key={node.id}>
                <td>
                  <Text value={node.destination} max={80} />
                  {node.description !== null && (
                    <small>
                      {' '}
                      <Text value={node.description} max={60} />
                    </small>
                  )}
                </td>
                <td>
                  <NodeState node={node} />
                </td>
                <td>
                  <Sparkline values={latencies.get(node.id) ?? []} />{' '}
                  {unitText(node.status?.latency_ms, 'ms')}
                </td>
                <td class="figure">{figureText(node.status?.active_calls)}</td>
                <td class="minor">
                  {node.status?.last_probe == null ? (
                    'none yet'
                  ) : (
                    <>
                      {node.status.last_probe.status}{' '}
                      <Text value={node.status.last_probe.reason} max={40} />,{' '}
                      <Moment at={node.status.last_probe.at} isToday />
                    </>
                  )}
                </td>
                {may('dispatcher:write') && (
                  <td>
                    <StateButton set={set} node={node} asked={asked} />
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function NodeState({ node }: { node: DispatcherNode }) {
  const [tone, text] = nodeState(node)
  return <Badge tone={tone}>{text}</Badge>
}

function StateButton({
  set,
  node,
  asked,
}: Omit<SetTableProps, 'latencies'> & { node: DispatcherNode }) {
  if (!node.is_enabled) return null
  const to = node.operator_state === 'inactive' ? 'active' : 'inactive'
  const text = to === 'inactive' ? 'Drain' : 'Take back'
  return (
    <button
      type="button"
      onClick={() => (asked.value = { set, node, to })}
      aria-label={`${text} ${node.destination}`}
    >
      {text}
    </button>
  )
}

function StateDialog({ change, onClose }: { change: Change; onClose: () => void }) {
  const { set, node, to } = change
  return (
    <Dialog
      title={to === 'inactive' ? 'Drain this node?' : 'Take this node back?'}
      action={to === 'inactive' ? 'Drain' : 'Take back'}
      onConfirm={async () => {
        const path = `/dispatcher/${set.id}/nodes/${node.id}/state`
        const answer = await send('PUT', path, { state: to })
        if (answer.kind !== 'failed' || answer.code !== 'last_active_node') return answer
        return { ...answer, message: lastNodeText }
      }}
      onClose={onClose}
    >
      <p>
        <Text value={node.destination} max={80} />
      </p>
      <p>
        {to === 'inactive'
          ? `It gets no new calls. Its ${node.status?.active_calls ?? 0} calls go on until they end; when none is left, it may be stopped.`
          : 'It gets new calls again as soon as it answers probes.'}
      </p>
    </Dialog>
  )
}

const lastNodeText =
  'This is the last node in service of its set: without it, calls to the set would be refused. ' +
  'Take another node back first.'
