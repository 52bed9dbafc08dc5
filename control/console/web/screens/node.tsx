/** One PBX node: whether it takes calls and why not, its day, latency, calls and changes. */
import { getAll } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { DispatcherNode, DispatcherSet, NodeHistory } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { Sparkline } from '../parts/chart.tsx'
import { shortAddress, unitText } from '../parts/format.ts'
import { Loaded, useActions } from '../parts/list.tsx'
import { PageHead } from '../parts/page-head.tsx'
import { useResource, useView } from '../parts/resource.ts'
import { Facts, Text } from '../parts/text.tsx'
import { CallsOf } from './calls-of.tsx'
import { ChangesOf } from './changes-of.tsx'
import { DayFigures } from './day-figures.tsx'
import { nodeAdvice, nodeState, nodeTitle } from './node-state.ts'
import { actionsOf, LastProbe, NodeCalls } from './nodes.tsx'
import { Advice } from './thing-parts.tsx'

const REFRESH_MS = 2_000

interface Found {
  readonly set: DispatcherSet
  readonly node: DispatcherNode
}

/** A node is known by its id within all sets. */
async function findNode(id: string) {
  const answer = await getAll<DispatcherSet>('/dispatcher')
  if (answer.kind !== 'ok') return answer
  for (const set of answer.data.rows)
    for (const node of set.nodes)
      if (`${node.id}` === id) return { ...answer, data: { set, node } satisfies Found }
  const message = 'Node not found'
  return { kind: 'failed' as const, code: 'not_found', message }
}

export function NodeScreen({ id }: { id: string }) {
  const found = useResource<Found>(`node ${id}`, () => findNode(id), {
    everyMs: REFRESH_MS,
    events: /^node\./,
  })
  return <Loaded of={found}>{(shown) => <Details of={shown} onChange={found.reload} />}</Loaded>
}

function Details({ of: { set, node }, onChange }: { of: Found; onChange: () => void }) {
  const { ask, notices, dialog } = useActions(onChange)
  const [tone, text] = nodeState(node)
  const history = useView<NodeHistory>('/metrics/nodes', { everyMs: 10_000 })
  const latencies = history.data.value?.nodes.find((each) => each.node_id === node.id)
  const { destination, status } = node
  return (
    <>
      <PageHead name={nodeTitle(node)} state={[tone, text]}>
        {may('dispatcher:write') &&
          actionsOf({ set, node }).map((action) => (
            <button key={action.text} type="button" onClick={ask(action)}>
              {action.text}
            </button>
          ))}
      </PageHead>
      {notices}
      <Advice tone={tone} text={nodeAdvice(node)} />
      <DayFigures of={{ node: destination }} />
      <h2>Set-up</h2>
      <Facts
        of={{
          Address: <Text value={shortAddress(destination)} max={80} />,
          Transport: node.transport,
          'Live calls': <NodeCalls node={node} />,
          'Calls at once, at most': node.max_calls === 0 ? 'unlimited' : node.max_calls,
          'Last probe': <LastProbe node={node} />,
          'Latency, 10 min': (
            <>
              <Sparkline values={latencies?.latencies_ms ?? []} />{' '}
              {unitText(status?.latency_ms, 'ms')}
            </>
          ),
          Priority: node.priority,
          Weight: node.weight,
          'Dispatcher set': (
            <a href={pathOf('dispatcher-sets', undefined, { q: set.endpoint_name })}>
              <Text value={set.endpoint_name} max={60} />
            </a>
          ),
        }}
      />
      <CallsOf by="node" text={destination}>
        <ChangesOf
          kind="dispatcher_node"
          id={`${set.set_id}/${destination}`}
          named={`the node ${nodeTitle(node)}`}
        />
      </CallsOf>
      {dialog}
    </>
  )
}
