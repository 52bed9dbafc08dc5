/** The screens, in the order of the menu: they are loaded once the frame is there. */
import type { ComponentChildren } from 'preact'
import { isGlobal, may } from '../api/session.ts'
import { later } from '../parts/later.tsx'
import { generalScreens, titleOf } from '../screens/general-screens.ts'
import { isIncomplete } from '../screens/setup.ts'

const loadScreens = () => import('./all-screens.ts')

const AccountScreen = later(async () => (await loadScreens()).AccountScreen)
const IdentityProvidersScreen = later(async () => (await loadScreens()).IdentityProvidersScreen)
const AiAgentsScreen = later(async () => (await loadScreens()).AiAgentsScreen)
const AlertChannelsScreen = later(async () => (await loadScreens()).AlertChannelsScreen)
const AlertRulesScreen = later(async () => (await loadScreens()).AlertRulesScreen)
const AlertsScreen = later(async () => (await loadScreens()).AlertsScreen)
const AuditScreen = later(async () => (await loadScreens()).AuditScreen)
const BansScreen = later(async () => (await loadScreens()).BansScreen)
const CarrierScreen = later(async () => (await loadScreens()).CarrierScreen)
const CarriersScreen = later(async () => (await loadScreens()).CarriersScreen)
const DispatcherSetsScreen = later(async () => (await loadScreens()).DispatcherSetsScreen)
const KeyScreen = later(async () => (await loadScreens()).KeyScreen)
const KeysScreen = later(async () => (await loadScreens()).KeysScreen)
const NumbersScreen = later(async () => (await loadScreens()).NumbersScreen)
const PhonesScreen = later(async () => (await loadScreens()).PhonesScreen)
const RatePlanScreen = later(async () => (await loadScreens()).RatePlanScreen)
const RatePlansScreen = later(async () => (await loadScreens()).RatePlansScreen)
const InboundRoutesScreen = later(async () => (await loadScreens()).InboundRoutesScreen)
const OutboundRoutesScreen = later(async () => (await loadScreens()).OutboundRoutesScreen)
const RoutingWebhooksScreen = later(async () => (await loadScreens()).RoutingWebhooksScreen)
const SettingsScreen = later(async () => (await loadScreens()).SettingsScreen)
const StirAuthoritiesScreen = later(async () => (await loadScreens()).StirAuthoritiesScreen)
const StirKeysScreen = later(async () => (await loadScreens()).StirKeysScreen)
const TenantsScreen = later(async () => (await loadScreens()).TenantsScreen)
const UsersScreen = later(async () => (await loadScreens()).UsersScreen)
const WebhookScreen = later(async () => (await loadScreens()).WebhookScreen)
const WebhooksScreen = later(async () => (await loadScreens()).WebhooksScreen)
const CallScreen = later(async () => (await loadScreens()).CallScreen)
const CallsScreen = later(async () => (await loadScreens()).CallsScreen)
const ChartsScreen = later(async () => (await loadScreens()).ChartsScreen)
const ChangesScreen = later(async () => (await loadScreens()).ChangesScreen)
const ProposalScreen = later(async () => (await loadScreens()).ProposalScreen)
const ProposalsScreen = later(async () => (await loadScreens()).ProposalsScreen)
const SpendGuardsScreen = later(async () => (await loadScreens()).SpendGuardsScreen)
const CustomerScreen = later(async () => (await loadScreens()).CustomerScreen)
const CustomersScreen = later(async () => (await loadScreens()).CustomersScreen)
const GeneralNounScreen = later(async () => (await loadScreens()).GeneralNounScreen)
const HistoryScreen = later(async () => (await loadScreens()).HistoryScreen)
const MarginsScreen = later(async () => (await loadScreens()).MarginsScreen)
const NodesScreen = later(async () => (await loadScreens()).NodesScreen)
const NowScreen = later(async () => (await loadScreens()).NowScreen)
const PaymentsScreen = later(async () => (await loadScreens()).PaymentsScreen)
const SimulatorScreen = later(async () => (await loadScreens()).SimulatorScreen)
const StartScreen = later(async () => (await loadScreens()).StartScreen)
const PhoneScreen = later(async () => (await loadScreens()).PhoneScreen)
const NodeScreen = later(async () => (await loadScreens()).NodeScreen)

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
