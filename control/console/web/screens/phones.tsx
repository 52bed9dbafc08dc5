/** Extensions, and whether a phone is registered for each. */
import type { Extension } from '../api/api-types.ts'
import { ListScreen } from '../parts/list-screen.tsx'
import type { ShownColumn } from '../parts/table.tsx'
import { Badge, Text } from '../parts/text.tsx'

const columns: readonly ShownColumn<Extension>[] = [
  {
    ...{ name: 'extension', title: 'Extension', value: (phone) => phone.extension },
    show: (phone) => <Text value={phone.extension} max={40} />,
  },
  {
    ...{ name: 'name', title: 'Name', value: (phone) => phone.display_name },
    show: (phone) => <Text value={phone.display_name} max={60} />,
  },
  {
    ...{ name: 'state', title: 'State', value: (phone) => phone.status },
    show: (phone) => (
      <Badge tone={phone.status === 'registered' ? 'good' : 'plain'}>{phone.status}</Badge>
    ),
  },
  {
    ...{ name: 'agent', title: 'Phone', value: (phone) => phone.user_agent },
    show: (phone) => <Text value={phone.user_agent} max={80} />,
  },
]

export const PhonesScreen = () => (
  <ListScreen
    label="Phones"
    path="/pbx/extensions?limit=200"
    columns={columns}
    keyOf={(phone) => phone.id}
    empty="There is no extension."
    events={/^registration$/}
  />
)
