/** Live calls: what they cost so far, and the way to end one. */
import { useSignal } from '@preact/signals'
import { getBare, send } from '../../api/api.ts'
import type { ActiveCall } from '../../api/api-types.ts'
import { pathOf } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { durationText, moneyText } from '../../parts/format.ts'
import { useResource } from '../../parts/resource.ts'
import { Table, type ShownColumn } from '../../parts/table.tsx'
import { Badge, Moment, Problem, Text } from '../../parts/text.tsx'

/** The server computes the costs of all calls for each answer: less often where there are many. */
const TICK_MS = 2_000

const isAnswered = ({ state }: ActiveCall): boolean => state === 'ACTIVE' || state === 'HELD'

const columns: readonly ShownColumn<ActiveCall>[] = [
  {
    ...{ name: 'from', title: 'From', value: (call) => call.caller_id_number },
    show: (call) => (
      <a href={pathOf('calls', call.call_uuid)}>
        <Text value={call.caller_id_number} max={40} />
      </a>
    ),
  },
  {
    ...{ name: 'to', title: 'To', value: (call) => call.destination_number },
    show: (call) => <Text value={call.destination_number} max={40} />,
  },
  {
    ...{ name: 'state', title: 'State', value: (call) => call.state },
    show: (call) => (
      <Badge tone={isAnswered(call) ? 'good' : 'plain'}>{call.state.toLowerCase()}</Badge>
    ),
  },
  {
    ...{ name: 'duration', title: 'Duration', value: (call) => call.duration_seconds },
    isFigure: true,
    show: (call) => durationText(call.duration_seconds),
  },
  {
    ...{ name: 'cost', title: 'Cost', value: (call) => call.cost },
    isFigure: true,
    show: (call) => moneyText(call.cost_exact, call.currency),
  },
  {
    ...{ name: 'node', title: 'Through', value: (call) => call.carrier ?? call.node },
    isMinor: true,
    show: (call) => <Text value={call.carrier ?? call.node} max={60} />,
  },
  {
    ...{ name: 'started', title: 'Started', value: (call) => call.start_stamp },
    isMinor: true,
    show: (call) => <Moment at={call.start_stamp} isToday />,
  },
]

export function CallsScreen() {
  const asked = useSignal<ActiveCall | undefined>(undefined)
  const calls = useResource('calls', () => getBare<ActiveCall[]>('/pbx/calls/active'), {
    everyMs: TICK_MS,
    events: /^call\./,
  })
  const actions: ShownColumn<ActiveCall> = {
    ...{ name: 'actions', title: 'Actions', value: () => null },
    show: (call) => (
      <button
        type="button"
        onClick={() => (asked.value = call)}
        aria-label={`Hang up ${call.caller_id_number}`}
      >
        Hang up
      </button>
    ),
  }
  return (
    <>
      <Problem message={calls.problem.value} />
      <Table
        label="Live calls"
        rows={calls.data.value ?? []}
        columns={may('calls:control') ? [...columns, actions] : columns}
        keyOf={(call) => call.call_uuid}
        empty={calls.data.value === undefined ? 'Loading …' : 'No call is in progress.'}
      />
      {asked.value !== undefined && (
        <HangUp
          call={asked.value}
          onClose={() => {
            asked.value = undefined
            calls.reload()
          }}
        />
      )}
    </>
  )
}

function HangUp({ call, onClose }: { call: ActiveCall; onClose: () => void }) {
  return (
    <Dialog
      title="Hang up this call?"
      action="Hang up"
      isDangerous
      onConfirm={() => send('POST', '/telephony/hangup', { call_uuid: call.call_uuid })}
      onClose={onClose}
    >
      <p>
        <Text value={call.caller_id_number} max={40} /> to{' '}
        <Text value={call.destination_number} max={40} />, {durationText(call.duration_seconds)}{' '}
        long. Both sides are disconnected at once, and the call is charged until now.
      </p>
    </Dialog>
  )
}
