/** The screens, in the order of the navigation. */
import type { ComponentChildren } from 'preact'
import { AuditScreen } from '../screens/audit.tsx'
import { BansScreen } from '../screens/bans.tsx'
import { CarrierScreen, CarriersScreen } from '../screens/carriers.tsx'
import { KeyScreen, KeysScreen } from '../screens/keys.tsx'
import { PhonesScreen } from '../screens/phones.tsx'
import { SettingsScreen } from '../screens/settings.tsx'
import { WebhookScreen, WebhooksScreen } from '../screens/webhooks.tsx'
import { CallScreen } from '../screens/call.tsx'
import { CallsScreen } from '../screens/calls.tsx'
import { ChartsScreen } from '../screens/charts.tsx'
import { ChangesScreen } from '../screens/changes.tsx'
import { ProposalScreen, ProposalsScreen } from '../screens/proposals.tsx'
import { SpendGuardsScreen } from '../screens/spend-guards.tsx'
import { CustomerScreen } from '../screens/customer.tsx'
import { CustomersScreen } from '../screens/customers.tsx'
import { HistoryScreen } from '../screens/history.tsx'
import { NodesScreen } from '../screens/nodes.tsx'
import { NowScreen } from '../screens/now.tsx'
import { SimulatorScreen } from '../screens/simulator.tsx'
import { isIncomplete, isStartListed, StartScreen } from '../screens/start.tsx'
import { isGlobal, may } from '../api/session.ts'

export interface Screen {
  readonly name: string
  readonly title: string
  /** A user without it does not see the screen. */
  readonly scope: string
  /** Shows the platform, which tenants do not see. */
  readonly isGlobalOnly?: boolean
  /** Whether the navigation has it now; absent: always. */
  readonly isListed?: () => boolean
  readonly all: () => ComponentChildren
  readonly oneTitle?: string
  readonly one?: (item: string) => ComponentChildren
}

const screens: readonly Screen[] = [
  {
    name: 'now',
    title: 'Now',
    scope: 'metrics:read',
    isGlobalOnly: true,
    all: () => (isIncomplete() ? <StartScreen /> : <NowScreen />),
  },
  {
    name: 'calls',
    title: 'Calls',
    scope: 'calls:read',
    all: () => <CallsScreen />,
    oneTitle: 'Call',
    one: (uuid) => <CallScreen uuid={uuid} />,
  },
  { name: 'history', title: 'Recent calls', scope: 'cdrs:read', all: () => <HistoryScreen /> },
  { name: 'charts', title: 'Charts', scope: 'cdrs:read', all: () => <ChartsScreen /> },
  { name: 'nodes', title: 'Nodes', scope: 'dispatcher:read', all: () => <NodesScreen /> },
  {
    name: 'customers',
    title: 'Customers',
    scope: 'customers:read',
    all: () => <CustomersScreen />,
    oneTitle: 'Customer',
    one: (id) => <CustomerScreen id={id} />,
  },
  {
    name: 'proposals',
    title: 'Proposals',
    scope: 'proposals:read',
    all: () => <ProposalsScreen />,
    oneTitle: 'Proposal',
    one: (uuid) => <ProposalScreen uuid={uuid} />,
  },
  { name: 'changes', title: 'Changes', scope: 'audit:read', all: () => <ChangesScreen /> },
  {
    name: 'spend-guards',
    title: 'Spend guards',
    scope: 'guard:read',
    all: () => <SpendGuardsScreen />,
  },
  {
    name: 'carriers',
    title: 'Carriers',
    scope: 'carriers:read',
    all: () => <CarriersScreen />,
    oneTitle: 'Carrier',
    one: (id) => <CarrierScreen id={id} />,
  },
  { name: 'phones', title: 'Phones', scope: 'extensions:read', all: () => <PhonesScreen /> },
  {
    name: 'simulator',
    title: 'Route simulator',
    scope: 'calls:read',
    all: () => <SimulatorScreen />,
  },
  {
    name: 'keys',
    title: 'Keys',
    scope: 'keys:read',
    all: () => <KeysScreen />,
    oneTitle: 'Key',
    one: (uuid) => <KeyScreen uuid={uuid} />,
  },
  {
    name: 'webhooks',
    title: 'Webhooks',
    scope: 'webhooks:read',
    all: () => <WebhooksScreen />,
    oneTitle: 'Deliveries',
    one: (id) => <WebhookScreen id={id} />,
  },
  {
    name: 'bans',
    title: 'Bans',
    scope: 'guard:read',
    isGlobalOnly: true,
    all: () => <BansScreen />,
  },
  { name: 'audit', title: 'Audit', scope: 'audit:read', all: () => <AuditScreen /> },
  {
    name: 'settings',
    title: 'Settings',
    scope: 'settings:view',
    isGlobalOnly: true,
    all: () => <SettingsScreen />,
  },
  {
    name: 'start',
    title: 'Start',
    scope: 'carriers:write',
    isGlobalOnly: true,
    isListed: isStartListed,
    all: () => <StartScreen />,
  },
]

/** The screens that the user may see. */
export const visibleScreens = (): readonly Screen[] =>
  screens.filter(({ scope, isGlobalOnly }) => may(scope) && (isGlobalOnly !== true || isGlobal()))
