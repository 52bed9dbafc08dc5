/** The screens, in the order of the menu: what they show is loaded once the frame is there. */
import { isGlobal, may } from '../api/session.ts'
import { generalName, generalScreens, titleOf } from '../screens/general-screens.ts'

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
  /** The page of one thing has it; absent: there is no such page. */
  readonly oneTitle?: string
}

const screens: readonly Screen[] = [
  {
    name: 'now',
    title: 'Now',
    scope: 'metrics:read',
    isGlobalOnly: true,
  },
  {
    name: 'calls',
    title: 'Live calls',
    group: 'Calls',
    scope: 'calls:read',
    oneTitle: 'Call',
  },
  {
    name: 'history',
    title: 'Calls',
    group: 'Calls',
    scope: 'cdrs:read',
  },
  {
    name: 'charts',
    title: 'Charts',
    group: 'Calls',
    scope: 'cdrs:read',
  },
  {
    name: 'simulator',
    title: 'Route simulator',
    group: 'Calls',
    scope: 'calls:read',
  },
  {
    name: 'carriers',
    title: 'Carriers',
    group: 'Routing',
    scope: 'carriers:read',
    oneTitle: 'Carrier',
  },
  {
    name: 'outbound-routes',
    title: 'Outbound routes',
    group: 'Routing',
    scope: 'routes:read',
  },
  {
    name: 'inbound-routes',
    title: 'Inbound routes',
    group: 'Routing',
    scope: 'routes:read',
  },
  {
    name: 'dispatcher-sets',
    title: 'Dispatcher sets',
    group: 'Routing',
    scope: 'dispatcher:read',
  },
  {
    name: 'nodes',
    title: 'PBX nodes',
    group: 'Routing',
    scope: 'dispatcher:read',
    oneTitle: 'PBX node',
  },
  {
    name: 'phones',
    title: 'Phones',
    group: 'Routing',
    scope: 'extensions:read',
    oneTitle: 'Extension',
  },
  {
    name: 'ai-agents',
    title: 'AI agents',
    group: 'Routing',
    scope: 'agents:read',
  },
  {
    name: 'numbers',
    title: 'Numbers',
    group: 'Routing',
    scope: 'customers:read',
  },
  {
    name: 'routing-webhooks',
    title: 'Routing webhooks',
    group: 'Routing',
    scope: 'webhooks:read',
  },
  {
    name: 'stir-keys',
    title: 'Signing keys',
    group: 'Routing',
    scope: 'carriers:read',
  },
  {
    name: 'stir-authorities',
    title: 'Signing authorities',
    group: 'Routing',
    scope: 'carriers:read',
  },
  {
    name: 'customers',
    title: 'Customers',
    group: 'Billing',
    scope: 'customers:read',
    oneTitle: 'Customer',
  },
  {
    name: 'rate-plans',
    title: 'Rate plans',
    group: 'Billing',
    scope: 'rates:read',
    oneTitle: 'Rate plan',
  },
  {
    name: 'margins',
    title: 'Margins',
    group: 'Billing',
    scope: 'cdrs:read',
  },
  {
    name: 'spend-guards',
    title: 'Spend guards',
    group: 'Billing',
    scope: 'guard:read',
  },
  {
    name: 'payments',
    title: 'Payments',
    group: 'Billing',
    scope: 'wallets:read',
    isGlobalOnly: true,
  },
  {
    name: 'tenants',
    title: 'Tenants',
    group: 'Access',
    scope: 'tenants:read',
    isGlobalOnly: true,
  },
  {
    name: 'users',
    title: 'Users',
    group: 'Access',
    scope: 'users:read',
  },
  {
    name: 'identity-providers',
    title: 'Identity providers',
    group: 'Access',
    scope: 'users:read',
  },
  {
    name: 'keys',
    title: 'Keys',
    group: 'Access',
    scope: 'keys:read',
    oneTitle: 'Key',
  },
  {
    name: 'alerts',
    title: 'Alerts',
    group: 'Platform',
    scope: 'webhooks:read',
  },
  {
    name: 'alert-rules',
    title: 'Alert rules',
    group: 'Platform',
    scope: 'webhooks:read',
  },
  {
    name: 'alert-channels',
    title: 'Alert channels',
    group: 'Platform',
    scope: 'webhooks:read',
  },
  {
    name: 'webhooks',
    title: 'Webhooks',
    group: 'Access',
    scope: 'webhooks:read',
    oneTitle: 'Endpoint',
  },
  {
    name: 'account',
    title: 'Your account',
    group: 'Access',
  },
  {
    name: 'bans',
    title: 'Bans',
    group: 'Access',
    scope: 'guard:read',
    isGlobalOnly: true,
  },
  {
    name: 'proposals',
    title: 'Proposals',
    group: 'Platform',
    scope: 'proposals:read',
    oneTitle: 'Proposal',
  },
  {
    name: 'changes',
    title: 'Changes',
    group: 'Platform',
    scope: 'audit:read',
  },
  {
    name: 'audit',
    title: 'Audit',
    group: 'Platform',
    scope: 'audit:read',
  },
  {
    name: 'start',
    title: 'First steps',
    group: 'Platform',
    scope: 'carriers:write',
    isGlobalOnly: true,
  },
  {
    name: 'settings',
    title: 'Settings',
    group: 'Platform',
    scope: 'settings:view',
    isGlobalOnly: true,
  },
  ...generalScreens.map((screen) => ({
    name: generalName(screen),
    title: titleOf(screen.many),
    group: screen.group,
    scope: `${screen.scope}:read`,
  })),
]

/** The screens that the user may see. */
export const visibleScreens = (): readonly Screen[] =>
  screens.filter(
    ({ scope, isGlobalOnly }) =>
      (scope === undefined || may(scope)) && (isGlobalOnly !== true || isGlobal()),
  )
