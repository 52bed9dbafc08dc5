/** Carriers: whether calls can go to them now. */
import type { Carrier } from '../api/api-types.ts'
import { figureText } from '../parts/format.ts'
import { ListScreen } from '../parts/list-screen.tsx'
import type { ShownColumn } from '../parts/table.tsx'
import { Badge, Text } from '../parts/text.tsx'

const stateOf = ({ is_active, status }: Carrier): string => {
  if (!is_active) return 'inactive'
  return status.is_usable ? 'usable' : 'not usable'
}

/** Gateways that answer, of all. */
const answering = ({ gateways }: Carrier): string => {
  const active = gateways.filter(({ status }) => status?.state === 'active')
  return `${active.length} of ${gateways.length}`
}

const columns: readonly ShownColumn<Carrier>[] = [
  {
    ...{ name: 'name', title: 'Name', value: (carrier) => carrier.name },
    show: (carrier) => <Text value={carrier.name} max={60} />,
  },
  {
    ...{ name: 'state', title: 'State', value: stateOf },
    show: (carrier) => (
      <Badge tone={!carrier.is_active ? 'plain' : carrier.status.is_usable ? 'good' : 'bad'}>
        {stateOf(carrier)}
      </Badge>
    ),
  },
  {
    ...{ name: 'registration', title: 'Registration', value: (carrier) => carrier.registration },
    show: (carrier) => <Text value={carrier.registration} />,
  },
  {
    ...{ name: 'answer', title: 'Last answer of the registrar' },
    value: (carrier) => carrier.status.registration?.last_answer?.status ?? null,
    isMinor: true,
    show: ({ status }) => {
      const answer = status.registration?.last_answer
      return <Text value={answer == null ? null : `${answer.status} ${answer.reason}`} max={60} />
    },
  },
  {
    ...{ name: 'gateways', title: 'Gateways that answer', value: answering },
    show: answering,
  },
  {
    ...{ name: 'calls', title: 'Calls', value: (carrier) => carrier.status.active_calls },
    isFigure: true,
    show: (carrier) => figureText(carrier.status.active_calls),
  },
  {
    ...{ name: 'tenant', title: 'Tenant', value: (carrier) => carrier.tenant },
    isMinor: true,
    show: (carrier) => <Text value={carrier.tenant} />,
  },
]

export const CarriersScreen = () => (
  <ListScreen
    label="Carriers"
    path="/routing/carriers?limit=200"
    columns={columns}
    keyOf={(carrier) => carrier.id}
    empty="There is no carrier."
  />
)
