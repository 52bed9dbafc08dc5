/** The screens, in the order of the menu: each is loaded when it is opened. */
import type { ComponentChildren } from 'preact'
import { isGlobal, may } from '../api/session.ts'
import { later } from '../parts/later.tsx'
import { generalScreens, titleOf } from '../screens/general-screens.ts'
import { isIncomplete } from '../screens/setup.ts'

const AccountScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.AccountScreen))
const IdentityProvidersScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.IdentityProvidersScreen),
)
const AiAgentsScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.AiAgentsScreen),
)
const AlertChannelsScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.AlertChannelsScreen),
)
const AlertRulesScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.AlertRulesScreen),
)
const AlertsScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.AlertsScreen))
const AuditScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.AuditScreen))
const BansScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.BansScreen))
const CarrierScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.CarrierScreen))
const CarriersScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.CarriersScreen),
)
const DispatcherSetsScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.DispatcherSetsScreen),
)
const KeyScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.KeyScreen))
const KeysScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.KeysScreen))
const NumbersScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.NumbersScreen))
const PhonesScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.PhonesScreen))
const RatePlanScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.RatePlanScreen),
)
const RatePlansScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.RatePlansScreen),
)
const InboundRoutesScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.InboundRoutesScreen),
)
const OutboundRoutesScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.OutboundRoutesScreen),
)
const RoutingWebhooksScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.RoutingWebhooksScreen),
)
const SettingsScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.SettingsScreen),
)
const StirAuthoritiesScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.StirAuthoritiesScreen),
)
const StirKeysScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.StirKeysScreen),
)
const TenantsScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.TenantsScreen))
const UsersScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.UsersScreen))
const WebhookScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.WebhookScreen))
const WebhooksScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.WebhooksScreen),
)
const CallScreen = later(() => import('./rooms/calls.ts').then((loaded) => loaded.CallScreen))
const CallsScreen = later(() => import('./rooms/calls.ts').then((loaded) => loaded.CallsScreen))
const ChartsScreen = later(() => import('./rooms/calls.ts').then((loaded) => loaded.ChartsScreen))
const ChangesScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.ChangesScreen))
const ProposalScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.ProposalScreen),
)
const ProposalsScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.ProposalsScreen),
)
const SpendGuardsScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.SpendGuardsScreen),
)
const CustomerScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.CustomerScreen),
)
const CustomersScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.CustomersScreen),
)
const GeneralNounScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.GeneralNounScreen),
)
const HistoryScreen = later(() => import('./rooms/calls.ts').then((loaded) => loaded.HistoryScreen))
const MarginsScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.MarginsScreen))
const NodesScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.NodesScreen))
const NowScreen = later(() => import('./rooms/now.ts').then((loaded) => loaded.NowScreen))
const PaymentsScreen = later(() =>
  import('./rooms/lists.ts').then((loaded) => loaded.PaymentsScreen),
)
const SimulatorScreen = later(() =>
  import('./rooms/calls.ts').then((loaded) => loaded.SimulatorScreen),
)
const StartScreen = later(() => import('./rooms/now.ts').then((loaded) => loaded.StartScreen))
const PhoneScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.PhoneScreen))
const NodeScreen = later(() => import('./rooms/lists.ts').then((loaded) => loaded.NodeScreen))

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
    title: 'Calls',
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
    oneTitle: 'PBX node',
    one: (id) => <NodeScreen id={id} />,
  },
  {
    name: 'phones',
    title: 'Phones',
    group: 'Routing',
    scope: 'extensions:read',
    all: () => <PhonesScreen />,
    oneTitle: 'Extension',
    one: (id) => <PhoneScreen id={id} />,
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
    name: 'alerts',
    title: 'Alerts',
    group: 'Platform',
    scope: 'webhooks:read',
    all: () => <AlertsScreen />,
  },
  {
    name: 'alert-rules',
    title: 'Alert rules',
    group: 'Platform',
    scope: 'webhooks:read',
    all: () => <AlertRulesScreen />,
  },
  {
    name: 'alert-channels',
    title: 'Alert channels',
    group: 'Platform',
    scope: 'webhooks:read',
    all: () => <AlertChannelsScreen />,
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
