/**
 * Shows the screens. All are loaded together after the frame: apart, they share so much that the
 * parts of it would be larger than what is saved. Forms and charts come when they are drawn.
 */
import type { ComponentChildren } from 'preact'
import { generalName, generalScreens } from '../screens/general-screens.ts'
import { isIncomplete } from '../screens/setup.ts'
import { AccountScreen } from '../screens/account.tsx'
import { AiAgentsScreen } from '../screens/ai-agents.tsx'
import { AlertChannelsScreen } from '../screens/alert-channels.tsx'
import { AlertRulesScreen } from '../screens/alert-rules.tsx'
import { AlertsScreen } from '../screens/alerts.tsx'
import { AuditScreen } from '../screens/audit.tsx'
import { BansScreen } from '../screens/bans.tsx'
import { CallScreen } from '../screens/call.tsx'
import { CallsScreen } from '../screens/calls.tsx'
import { CarrierScreen } from '../screens/carrier.tsx'
import { CarriersScreen } from '../screens/carriers.tsx'
import { ChangesScreen } from '../screens/changes.tsx'
import { ChartsScreen } from '../screens/charts.tsx'
import { CustomerScreen } from '../screens/customer.tsx'
import { CustomersScreen } from '../screens/customers.tsx'
import { DispatcherSetsScreen } from '../screens/dispatcher-sets.tsx'
import { GeneralNounScreen } from '../screens/general.tsx'
import { HistoryScreen } from '../screens/history.tsx'
import { IdentityProvidersScreen } from '../screens/identity-providers.tsx'
import { KeyScreen, KeysScreen } from '../screens/keys.tsx'
import { MarginsScreen } from '../screens/margins.tsx'
import { NodeScreen } from '../screens/node.tsx'
import { NodesScreen } from '../screens/nodes.tsx'
import { NowScreen } from '../screens/now.tsx'
import { NumbersScreen } from '../screens/numbers.tsx'
import { PaymentsScreen } from '../screens/payments.tsx'
import { PhoneScreen } from '../screens/phone.tsx'
import { PhonesScreen } from '../screens/phones.tsx'
import { ProposalScreen, ProposalsScreen } from '../screens/proposals.tsx'
import { RatePlanScreen, RatePlansScreen } from '../screens/rate-plans.tsx'
import { InboundRoutesScreen, OutboundRoutesScreen } from '../screens/routes.tsx'
import { RoutingWebhooksScreen } from '../screens/routing-webhooks.tsx'
import { SettingsScreen } from '../screens/settings.tsx'
import { SimulatorScreen } from '../screens/simulator.tsx'
import { SpendGuardsScreen } from '../screens/spend-guards.tsx'
import { StartScreen } from '../screens/start.tsx'
import { StirAuthoritiesScreen } from '../screens/stir-authorities.tsx'
import { StirKeysScreen } from '../screens/stir-keys.tsx'
import { TenantsScreen } from '../screens/tenants.tsx'
import { UsersScreen } from '../screens/users.tsx'
import { WebhookScreen, WebhooksScreen } from '../screens/webhooks.tsx'

interface Shown {
  readonly all: () => ComponentChildren
  readonly one?: (item: string) => ComponentChildren
}

/** Their names are those of `screens.ts`. */
const shown: Readonly<Record<string, Shown>> = {
  now: { all: () => (isIncomplete() ? <StartScreen /> : <NowScreen />) },
  calls: { all: () => <CallsScreen />, one: (uuid) => <CallScreen uuid={uuid} /> },
  history: { all: () => <HistoryScreen /> },
  charts: { all: () => <ChartsScreen /> },
  simulator: { all: () => <SimulatorScreen /> },
  carriers: { all: () => <CarriersScreen />, one: (id) => <CarrierScreen id={id} /> },
  'outbound-routes': { all: () => <OutboundRoutesScreen /> },
  'inbound-routes': { all: () => <InboundRoutesScreen /> },
  'dispatcher-sets': { all: () => <DispatcherSetsScreen /> },
  nodes: { all: () => <NodesScreen />, one: (id) => <NodeScreen id={id} /> },
  phones: { all: () => <PhonesScreen />, one: (id) => <PhoneScreen id={id} /> },
  'ai-agents': { all: () => <AiAgentsScreen /> },
  numbers: { all: () => <NumbersScreen /> },
  'routing-webhooks': { all: () => <RoutingWebhooksScreen /> },
  'stir-keys': { all: () => <StirKeysScreen /> },
  'stir-authorities': { all: () => <StirAuthoritiesScreen /> },
  customers: { all: () => <CustomersScreen />, one: (id) => <CustomerScreen id={id} /> },
  'rate-plans': { all: () => <RatePlansScreen />, one: (id) => <RatePlanScreen id={id} /> },
  margins: { all: () => <MarginsScreen /> },
  'spend-guards': { all: () => <SpendGuardsScreen /> },
  payments: { all: () => <PaymentsScreen /> },
  tenants: { all: () => <TenantsScreen /> },
  users: { all: () => <UsersScreen /> },
  'identity-providers': { all: () => <IdentityProvidersScreen /> },
  keys: { all: () => <KeysScreen />, one: (uuid) => <KeyScreen uuid={uuid} /> },
  alerts: { all: () => <AlertsScreen /> },
  'alert-rules': { all: () => <AlertRulesScreen /> },
  'alert-channels': { all: () => <AlertChannelsScreen /> },
  webhooks: { all: () => <WebhooksScreen />, one: (id) => <WebhookScreen id={id} /> },
  account: { all: () => <AccountScreen /> },
  bans: { all: () => <BansScreen /> },
  proposals: { all: () => <ProposalsScreen />, one: (uuid) => <ProposalScreen uuid={uuid} /> },
  changes: { all: () => <ChangesScreen /> },
  audit: { all: () => <AuditScreen /> },
  start: { all: () => <StartScreen /> },
  settings: { all: () => <SettingsScreen /> },
}

interface ShownScreenProps {
  readonly name: string
  /** The thing of the screen; undefined: all of it. */
  readonly item: string | undefined
}

export function ShownScreen({ name, item }: ShownScreenProps) {
  const { all, one } = shown[name] ?? {}
  if (item !== undefined && one !== undefined) return <>{one(item)}</>
  if (all !== undefined) return <>{all()}</>
  const screen = generalScreens.find((each) => generalName(each) === name)
  return screen === undefined ? null : <GeneralNounScreen screen={screen} />
}
