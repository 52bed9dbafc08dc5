/** The kinds of alert rules: by which events they open and close, or what they measure. */

export const channelKinds = ['email', 'slack', 'pagerduty', 'webhook'] as const
export type ChannelKind = (typeof channelKinds)[number]

export const alertSeverities = ['info', 'warning', 'critical'] as const
export type AlertSeverity = (typeof alertSeverities)[number]

export const alertKinds = [
  'node_down',
  'carrier_down',
  'registration_lost',
  'instance_lost',
  'asr_below',
  'mos_below',
  'spend_above',
  'balance_below',
  'payment_not_credited',
  'certificate_expiring',
  'disk_low',
  'replication_lag',
  'webhook_failing',
  'finding_opened',
] as const
export type AlertRuleKind = (typeof alertKinds)[number]

export type AlertRuleFilter = 'customer' | 'carrier' | 'node' | 'least_severity'

interface KindFacts {
  /** A sentence with the name of the rule before it. */
  readonly title: string
  /** Whoever has a rule of the kind is told what these scopes read. */
  readonly scopes: readonly ReadScope[]
  readonly filters: readonly AlertRuleFilter[]
  /** It concerns the installation: tenants have no such rules. */
  readonly isGlobalOnly?: true
  /** Types of events that open and close its alerts. */
  readonly events?: EventsOfKind
  readonly measured?: Measured
}

export type ReadScope =
  | ('dispatcher:read' | 'carriers:read' | 'extensions:read' | 'metrics:read')
  | ('cdrs:read' | 'wallets:read' | 'webhooks:read')

interface EventsOfKind {
  readonly opens: readonly string[]
  /** Empty: it happens once, and nothing says that it is over. */
  readonly closes: readonly string[]
}

export interface Measured {
  readonly least: number
  readonly most: number
  readonly unit: string
  /** An alert opens on this side of the threshold. */
  readonly isBad: 'below' | 'above'
  /** It closes this far beyond the threshold: a value that trembles opens one alert. */
  readonly margin: (threshold: number) => number
  /** It looks at the calls of a window. */
  readonly hasWindow?: true
  /** Each instance measures its own. */
  readonly isOfInstance?: true
  /** Why an alert ends of which there is no value any more; undefined: that is good. */
  readonly absent?: string
}

const twentieth = (threshold: number): number => Math.abs(threshold) * 0.05

export const kindFacts: Readonly<Record<AlertRuleKind, KindFacts>> = {
  node_down: {
    title: 'A PBX node is out of service',
    scopes: ['dispatcher:read'],
    filters: ['node'],
    events: { opens: ['dispatcher.node.down'], closes: ['dispatcher.node.up'] },
  },
  carrier_down: {
    title: 'A carrier is out of service',
    scopes: ['carriers:read'],
    filters: ['carrier'],
    events: { opens: ['carrier.down'], closes: ['carrier.up'] },
  },
  registration_lost: {
    title: 'A registration is lost',
    scopes: ['extensions:read', 'carriers:read'],
    filters: ['carrier'],
    events: { opens: ['registration.lost'], closes: [] },
  },
  instance_lost: {
    title: 'An instance is lost',
    scopes: ['metrics:read'],
    filters: [],
    isGlobalOnly: true,
    events: { opens: ['node.lost'], closes: ['node.recovered'] },
  },
  asr_below: {
    title: 'Few calls are answered',
    scopes: ['cdrs:read'],
    filters: ['customer', 'carrier'],
    measured: {
      least: 0,
      most: 100,
      unit: '%',
      isBad: 'below',
      margin: () => 2,
      hasWindow: true,
      absent: 'There are no such calls in the window any more',
    },
  },
  mos_below: {
    title: 'Calls sound bad',
    scopes: ['cdrs:read'],
    filters: ['customer', 'carrier'],
    measured: {
      least: 1,
      most: 5,
      unit: 'MOS',
      isBad: 'below',
      margin: () => 0.1,
      hasWindow: true,
      absent: 'There are no such calls in the window any more',
    },
  },
  spend_above: {
    title: 'A customer spends much',
    scopes: ['cdrs:read', 'wallets:read'],
    filters: ['customer'],
    measured: {
      least: 0,
      most: 1e9,
      unit: '',
      isBad: 'above',
      margin: twentieth,
      hasWindow: true,
    },
  },
  balance_below: {
    title: 'A balance is low',
    scopes: ['wallets:read'],
    filters: ['customer'],
    measured: { least: -1e9, most: 1e9, unit: '', isBad: 'below', margin: twentieth },
  },
  payment_not_credited: {
    title: 'A payment was not credited',
    scopes: ['wallets:read'],
    filters: [],
    isGlobalOnly: true,
    events: { opens: ['payment.alert'], closes: [] },
  },
  certificate_expiring: {
    title: 'A certificate expires',
    scopes: ['metrics:read'],
    filters: [],
    isGlobalOnly: true,
    measured: {
      least: 1,
      most: 365,
      unit: 'days',
      isBad: 'below',
      margin: () => 0,
      isOfInstance: true,
      absent: 'The certificate is not in use any more',
    },
  },
  disk_low: {
    title: 'A disk is nearly full',
    scopes: ['metrics:read'],
    filters: [],
    isGlobalOnly: true,
    measured: {
      least: 1,
      most: 99,
      unit: '% free',
      isBad: 'below',
      margin: () => 1,
      isOfInstance: true,
      absent: 'The folder is not looked at any more',
    },
  },
  replication_lag: {
    title: 'A standby of the database is behind',
    scopes: ['metrics:read'],
    filters: [],
    isGlobalOnly: true,
    measured: {
      least: 1,
      most: 86_400,
      unit: 's',
      isBad: 'above',
      margin: twentieth,
      absent: 'The standby is not connected any more',
    },
  },
  webhook_failing: {
    title: 'A webhook is not delivered',
    scopes: ['webhooks:read'],
    filters: [],
    measured: { least: 1, most: 10, unit: 'attempts', isBad: 'above', margin: () => 0 },
  },
  finding_opened: {
    title: 'Something is unusual',
    scopes: ['metrics:read'],
    filters: ['customer', 'carrier', 'least_severity'],
    events: { opens: ['finding.opened'], closes: ['finding.closed'] },
  },
}

/** The types of events that any rule of these kinds needs. */
export const typesOfKinds = (kinds: readonly AlertRuleKind[]): ReadonlySet<string> =>
  new Set(
    kinds.flatMap((kind) => {
      const { opens = [], closes = [] } = kindFacts[kind].events ?? {}
      return [...opens, ...closes]
    }),
  )
