/** The processes that share the database, where there are several. */
import { get } from '../api/api.ts'
import type { ProcessNode } from '../api/views.ts'
import { figureText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Moment, Text } from '../parts/text.tsx'
import type { Tone } from '../parts/tone.ts'

const REFRESH_MS = 2_000

const tones: Readonly<Record<ProcessNode['state'], Tone>> = {
  starting: 'warn',
  serving: 'good',
  draining: 'warn',
  stopped: 'plain',
  lost: 'bad',
}

const columns: readonly ShownColumn<ProcessNode>[] = [
  {
    name: 'node',
    title: 'Node',
    value: ({ name }) => name,
    show: ({ name, is_this: isThis }) => (
      <>
        <Text value={name} max={80} /> {isThis && <small>this page comes from it</small>}
      </>
    ),
  },
  {
    name: 'state',
    title: 'State',
    value: ({ state }) => state,
    show: ({ state, differing_settings: settings }) => (
      <>
        <Badge tone={tones[state]}>{state}</Badge>
        {settings.length > 0 && <small> differs in {settings.join(', ')}</small>}
      </>
    ),
  },
  {
    name: 'calls',
    title: 'Calls',
    value: ({ live_calls: calls }) => calls,
    isFigure: true,
    show: ({ live_calls: calls }) => <>{figureText(calls)}</>,
  },
  {
    name: 'epoch',
    title: 'Starts',
    value: ({ epoch }) => epoch,
    isFigure: true,
    show: ({ epoch }) => <>{figureText(epoch)}</>,
  },
  {
    name: 'heartbeat',
    title: 'Heard',
    value: ({ heartbeat_at: at }) => at,
    show: ({ heartbeat_at: at }) => <Moment at={at} isToday />,
  },
  {
    name: 'version',
    title: 'Version',
    value: ({ version }) => version,
    isMinor: true,
    show: ({ version }) => <Text value={version} max={40} />,
  },
]

export function PlatformNodes() {
  const nodes = useResource('platform-nodes', () => get<readonly ProcessNode[]>('/nodes'), {
    everyMs: REFRESH_MS,
  })
  const rows = nodes.data.value ?? []
  if (rows.length < 2) return null
  return (
    <section>
      <h2>Nodes of the platform</h2>
      <Table
        label="Nodes of the platform"
        rows={rows}
        columns={columns}
        keyOf={({ name }) => name}
        empty="There is no node."
      />
    </section>
  )
}
