/** The screens, in the order of the navigation. */
import type { ComponentChildren } from 'preact'
import { CallScreen } from '../screens/call.tsx'
import { CallsScreen } from '../screens/calls.tsx'
import { CustomerScreen } from '../screens/customer.tsx'
import { CustomersScreen } from '../screens/customers.tsx'
import { HistoryScreen } from '../screens/history.tsx'
import { KeysScreen } from '../screens/keys.tsx'
import { NodesScreen } from '../screens/nodes.tsx'
import { NowScreen } from '../screens/now.tsx'
import { isGlobal, may } from './session.ts'

export interface Screen {
  readonly name: string
  readonly title: string
  /** A user without it does not see the screen. */
  readonly scope: string
  /** Shows the platform, which tenants do not see. */
  readonly isGlobalOnly?: boolean
  readonly all: () => ComponentChildren
  readonly one?: (item: string) => ComponentChildren
}

const screens: readonly Screen[] = [
  {
    name: 'now',
    title: 'Now',
    scope: 'metrics:read',
    isGlobalOnly: true,
    all: () => <NowScreen />,
  },
  {
    ...{ name: 'calls', title: 'Calls', scope: 'calls:read', all: () => <CallsScreen /> },
    one: (uuid) => <CallScreen uuid={uuid} />,
  },
  { name: 'history', title: 'Recent calls', scope: 'cdrs:read', all: () => <HistoryScreen /> },
  { name: 'nodes', title: 'Nodes', scope: 'dispatcher:read', all: () => <NodesScreen /> },
  {
    ...{ name: 'customers', title: 'Customers', scope: 'customers:read' },
    all: () => <CustomersScreen />,
    one: (id) => <CustomerScreen id={id} />,
  },
  { name: 'keys', title: 'Keys', scope: 'keys:read', all: () => <KeysScreen /> },
]

/** Those that the user may see. */
export const visibleScreens = (): readonly Screen[] =>
  screens.filter(({ scope, isGlobalOnly }) => may(scope) && (isGlobalOnly !== true || isGlobal()))
