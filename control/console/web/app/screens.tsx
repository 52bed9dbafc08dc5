/** The screens, in the order of the menu. */
import type { ComponentChildren } from 'preact'
import { AccountScreen } from '../screens/account.tsx'
import { AiAgentsScreen } from '../screens/ai-agents.tsx'
import { AuditScreen } from '../screens/audit.tsx'
import { BansScreen } from '../screens/bans.tsx'
import { CarrierScreen, CarriersScreen } from '../screens/carriers.tsx'
import { DispatcherSetsScreen } from '../screens/dispatcher-sets.tsx'
import { IdentityProvidersScreen } from '../screens/identity-providers.tsx'
import { KeyScreen, KeysScreen } from '../screens/keys.tsx'
import { NumbersScreen } from '../screens/numbers.tsx'
import { PhonesScreen } from '../screens/phones.tsx'
import { RatePlanScreen, RatePlansScreen } from '../screens/rate-plans.tsx'
import { InboundRoutesScreen, OutboundRoutesScreen } from '../screens/routes.tsx'
import { RoutingWebhooksScreen } from '../screens/routing-webhooks.tsx'
import { SettingsScreen } from '../screens/settings.tsx'
import { StirAuthoritiesScreen } from '../screens/stir-authorities.tsx'
import { StirKeysScreen } from '../screens/stir-keys.tsx'
import { TenantsScreen } from '../screens/tenants.tsx'
import { UsersScreen } from '../screens/users.tsx'
import { WebhookScreen, WebhooksScreen } from '../screens/webhooks.tsx'
import { CallScreen } from '../screens/call.tsx'
import { CallsScreen } from '../screens/calls.tsx'
import { ChartsScreen } from '../screens/charts.tsx'
import { ChangesScreen } from '../screens/changes.tsx'
import { ProposalScreen, ProposalsScreen } from '../screens/proposals.tsx'
import { SpendGuardsScreen } from '../screens/spend-guards.tsx'
import { CustomerScreen } from '../screens/customer.tsx'
import { CustomersScreen } from '../screens/customers.tsx'
import { GeneralNounScreen, generalScreens, titleOf } from '../screens/general.tsx'
import { HistoryScreen } from '../screens/history.tsx'
import { MarginsScreen } from '../screens/margins.tsx'
import { NodesScreen } from '../screens/nodes.tsx'
import { NowScreen } from '../screens/now.tsx'
import { PaymentsScreen } from '../screens/payments.tsx'
import { SimulatorScreen } from '../screens/simulator.tsx'
import { isIncomplete, StartScreen } from '../screens/start.tsx'
import { isGlobal, may } from '../api/session.ts'

/** The groups of the menu, in its order. */
export const groups = ['Calls', 'Routing', 'Billing', 'Access', 'Platform'] as const
export type Group = (typeof groups)[number]

export interface Screen {
  readonly name: string
  readonly title: string
  /**
   * Under which heading of the menu it stands, in the order of this table; absent: on top, without
   * a heading.
   */
  readonly group?: Group
  /** A user without it does not see the screen; absent: it is of the user alone. */
  readonly scope?: string
  /** Shows the platform, which tenants do not see. */
  readonly isGlobalOnly?: boolean
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
    title: 'Live calls',
    group: 'Calls',
    scope: 'calls:read',
    all: () => <CallsScreen />,
    oneTitle: 'Call',
    one: (uuid) => <CallScreen uuid={uuid} />,
  },
  {
    name: 'history',
    title: 'Recent calls',
    group: 'Calls',
    scope: 'cdrs:read',
    all: () => <HistoryScreen />,
  },
  {
    name: 'charts',
    title: 'Charts',
    group: 'Calls',
    scope: 'cdrs:read',
    all: () => <ChartsScreen />,
  },
  {
    name: 'simulator',
    title: 'Route simulator',
    group: 'Calls',
    scope: 'calls:read',
    all: () => <SimulatorScreen />,
  },
  {
    name: 'carriers',
    title: 'Carriers',
    group: 'Routing',
    scope: 'carriers:read',
    all: () => <CarriersScreen />,
    oneTitle: 'Carrier',
    one: (id) => <CarrierScreen id={id} />,
  },
  {
    name: 'outbound-routes',
    title: 'Outbound routes',
    group: 'Routing',
    scope: 'routes:read',
    all: () => <OutboundRoutesScreen />,
  },
  {
    name: 'inbound-routes',
    title: 'Inbound routes',
    group: 'Routing',
    scope: 'routes:read',
    all: () => <InboundRoutesScreen />,
  },
  {
    name: 'dispatcher-sets',
    title: 'Dispatcher sets',
    group: 'Routing',
    scope: 'dispatcher:read',
    all: () => <DispatcherSetsScreen />,
  },
  {
    name: 'nodes',
    title: 'PBX nodes',
    group: 'Routing',
    scope: 'dispatcher:read',
    all: () => <NodesScreen />,
  },
  {
    name: 'phones',
    title: 'Phones',
    group: 'Routing',
    scope: 'extensions:read',
    all: () => <PhonesScreen />,
  },
  {
    name: 'ai-agents',
    title: 'AI agents',
    group: 'Routing',
    scope: 'agents:read',
    all: () => <AiAgentsScreen />,
  },
  {
    name: 'numbers',
    title: 'Numbers',
    group: 'Routing',
    scope: 'customers:read',
    all: () => <NumbersScreen />,
  },
  {
    name: 'routing-webhooks',
    title: 'Routing webhooks',
    group: 'Routing',
    scope: 'webhooks:read',
    all: () => <RoutingWebhooksScreen />,
  },
  {
    name: 'stir-keys',
    title: 'Signing keys',
    group: 'Routing',
    scope: 'carriers:read',
    all: () => <StirKeysScreen />,
  },
  {
    name: 'stir-authorities',
    title: 'Signing authorities',
    group: 'Routing',
    scope: 'carriers:read',
    all: () => <StirAuthoritiesScreen />,
  },
  {
    name: 'customers',
    title: 'Customers',
    group: 'Billing',
    scope: 'customers:read',
    all: () => <CustomersScreen />,
    oneTitle: 'Customer',
    one: (id) => <CustomerScreen id={id} />,
  },
  {
    name: 'rate-plans',
    title: 'Rate plans',
    group: 'Billing',
    scope: 'rates:read',
    all: () => <RatePlansScreen />,
    oneTitle: 'Rate plan',
    one: (id) => <RatePlanScreen id={id} />,
  },
  {
    name: 'margins',
    title: 'Margins',
    group: 'Billing',
    scope: 'cdrs:read',
    all: () => <MarginsScreen />,
  },
  {
    name: 'spend-guards',
    title: 'Spend guards',
    group: 'Billing',
    scope: 'guard:read',
    all: () => <SpendGuardsScreen />,
  },
  {
    name: 'payments',
    title: 'Payments',
    group: 'Billing',
    scope: 'wallets:read',
    isGlobalOnly: true,
    all: () => <PaymentsScreen />,
  },
  {
    name: 'tenants',
    title: 'Tenants',
    group: 'Access',
    scope: 'tenants:read',
    isGlobalOnly: true,
    all: () => <TenantsScreen />,
  },
  {
    name: 'users',
    title: 'Users',
    group: 'Access',
    scope: 'users:read',
    all: () => <UsersScreen />,
  },
  {
    name: 'identity-providers',
    title: 'Identity providers',
    group: 'Access',
    scope: 'users:read',
    all: () => <IdentityProvidersScreen />,
  },
  {
    name: 'keys',
    title: 'Keys',
    group: 'Access',
    scope: 'keys:read',
    all: () => <KeysScreen />,
    oneTitle: 'Key',
    one: (uuid) => <KeyScreen uuid={uuid} />,
  },
  {
    name: 'webhooks',
    title: 'Webhooks',
    group: 'Access',
    scope: 'webhooks:read',
    all: () => <WebhooksScreen />,
    oneTitle: 'Deliveries',
    one: (id) => <WebhookScreen id={id} />,
  },
  {
    name: 'account',
    title: 'Your account',
    group: 'Access',
    all: () => <AccountScreen />,
  },
  {
    name: 'bans',
    title: 'Bans',
    group: 'Access',
    scope: 'guard:read',
    isGlobalOnly: true,
    all: () => <BansScreen />,
  },
  {
    name: 'proposals',
    title: 'Proposals',
    group: 'Platform',
    scope: 'proposals:read',
    all: () => <ProposalsScreen />,
    oneTitle: 'Proposal',
    one: (uuid) => <ProposalScreen uuid={uuid} />,
  },
  {
    name: 'changes',
    title: 'Changes',
    group: 'Platform',
    scope: 'audit:read',
    all: () => <ChangesScreen />,
  },
  {
    name: 'audit',
    title: 'Audit',
    group: 'Platform',
    scope: 'audit:read',
    all: () => <AuditScreen />,
  },
  {
    name: 'start',
    title: 'First steps',
    group: 'Platform',
    scope: 'carriers:write',
    isGlobalOnly: true,
    all: () => <StartScreen />,
  },
  {
    name: 'settings',
    title: 'Settings',
    group: 'Platform',
    scope: 'settings:view',
    isGlobalOnly: true,
    all: () => <SettingsScreen />,
  },
  ...generalScreens.map((screen) => ({
    name: screen.many.replaceAll(' ', '-').toLowerCase(),
    title: titleOf(screen.many),
    group: screen.group,
    scope: `${screen.scope}:read`,
    all: () => <GeneralNounScreen screen={screen} />,
  })),
]

/** The screens that the user may see. */
export const visibleScreens = (): readonly Screen[] =>
  screens.filter(
    ({ scope, isGlobalOnly }) =>
      (scope === undefined || may(scope)) && (isGlobalOnly !== true || isGlobal()),
  )
