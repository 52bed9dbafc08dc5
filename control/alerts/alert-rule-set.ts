/** Rules and channels as they are in force: read from the database, with opened secrets. */
import type { Selectable } from 'kysely'
import { fromFlag } from '../../schema/columns.ts'
import type {
  AlertRuleKind,
  AlertSeverity,
  ChannelKind,
} from '../../schema/contracts/alert-kinds.ts'
import type { QuietHours } from '../../schema/rules/quiet-hours.ts'
import { all } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { AlertChannelTable, AlertRuleTable } from '../../schema/tables/alerts.ts'
import { grouped } from '../http/rows.ts'
import { openedSecret } from '../resources/alert-channels.ts'

export interface RuleInForce {
  readonly id: number
  readonly name: string
  /** Null: it sees what happens to all tenants. */
  readonly tenantId: number | null
  readonly kind: AlertRuleKind
  readonly severity: AlertSeverity
  readonly threshold: number | null
  readonly windowMs: number
  readonly leastCalls: number
  readonly forMs: number
  readonly customerId: number | null
  readonly carrierId: number | null
  /** The name of its carrier, by which call records know it. */
  readonly carrier: string | null
  readonly node: string | null
  readonly leastSeverity: AlertRuleTable['least_severity']
  readonly groupMs: number
  readonly quietHours: QuietHours | undefined
  readonly channels: readonly ChannelInForce[]
}

export interface ChannelInForce {
  readonly id: number
  readonly name: string
  readonly tenantId: number | null
  readonly kind: ChannelKind
  readonly isEnabled: boolean
  readonly recipients: readonly string[]
  readonly sender: string | null
  /** Undefined: that of the installation. */
  readonly mailServer: MailServer | undefined
  readonly url: string | null
  /** Undefined: it has none, or it cannot be read with the key of the secrets. */
  readonly secret: string | undefined
}

export interface MailServer {
  readonly host: string
  readonly port: number
  readonly tls: 'starttls' | 'tls' | 'none'
  readonly user: string | undefined
  readonly password: string | undefined
}

export interface AlertRuleSet {
  /** Enabled ones. */
  readonly rules: readonly RuleInForce[]
  readonly channels: ReadonlyMap<number, ChannelInForce>
}

export async function loadRuleSet(store: Store): Promise<AlertRuleSet> {
  const { db } = store
  const channelRows = await all(store, db.selectFrom('alert_channel').selectAll().orderBy('id'))
  const channels = new Map(channelRows.map((row) => [row.id, channelOf(store, row)]))
  const links = await all(store, db.selectFrom('alert_rule_channel').selectAll())
  const channelsOf = grouped(links, ({ rule_id: rule }) => rule)
  const rows = await all(
    store,
    db
      .selectFrom('alert_rule')
      .leftJoin('carrier', 'carrier.id', 'alert_rule.carrier_id')
      .selectAll('alert_rule')
      .select('carrier.name as carrier')
      .where('is_enabled', '=', 1)
      .orderBy('alert_rule.id'),
  )
  const rules = rows.map((row) =>
    ruleOf(
      row,
      (channelsOf.get(row.id) ?? []).flatMap(({ channel_id: id }) => channels.get(id) ?? []),
    ),
  )
  return { rules, channels }
}

const ruleOf = (
  row: Selectable<AlertRuleTable> & { readonly carrier: string | null },
  channels: readonly ChannelInForce[],
): RuleInForce => ({
  id: row.id,
  name: row.name,
  tenantId: row.tenant_id,
  kind: row.kind,
  severity: row.severity,
  threshold: row.threshold,
  windowMs: row.window_seconds * 1_000,
  leastCalls: row.least_calls,
  forMs: row.for_seconds * 1_000,
  customerId: row.customer_id,
  carrierId: row.carrier_id,
  carrier: row.carrier,
  node: row.node,
  leastSeverity: row.least_severity,
  groupMs: row.group_seconds * 1_000,
  // Only the noun writes it.
  quietHours: row.quiet_hours === null ? undefined : (JSON.parse(row.quiet_hours) as QuietHours),
  channels,
})

function channelOf(store: Store, row: Selectable<AlertChannelTable>): ChannelInForce {
  const secret = row.secret === null ? undefined : openedSecret(store, row.id, row.secret)
  const tls = row.smtp_tls ?? 'starttls'
  return {
    id: row.id,
    name: row.name,
    tenantId: row.tenant_id,
    kind: row.kind,
    isEnabled: fromFlag(row.is_enabled),
    recipients: row.recipients === null ? [] : (JSON.parse(row.recipients) as string[]),
    sender: row.sender,
    mailServer:
      row.smtp_host === null
        ? undefined
        : {
            host: row.smtp_host,
            port: row.smtp_port ?? (tls === 'tls' ? 465 : 587),
            tls,
            user: row.smtp_user ?? undefined,
            password: secret,
          },
    url: row.url,
    secret,
  }
}
