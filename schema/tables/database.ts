/**
 * The tables as types. Columns keep the specification's spelling; times are integers in
 * milliseconds UTC (`…_at`, `…_stamp`), money is integer micro-units (`…_micros`), booleans are
 * 0 or 1, JSON is text. `migrations/` creates exactly these tables.
 */
import type { AccessTables } from './access.ts'
import type { AlertTables } from './alerts.ts'
import type { CallTables } from './calls.ts'
import type { ChangeTables } from './changes.ts'
import type { FindingTables } from './findings.ts'
import type { MoneyTables } from './money.ts'
import type { ReratingTables } from './reratings.ts'
import type { RoutingTables } from './routing.ts'
import type { TenantTables } from './tenants.ts'
import type { SettingTable, InstanceTable, ShareTable, SourceBanTable } from './installation.ts'

export interface Database
  extends
    AccessTables,
    AlertTables,
    CallTables,
    ChangeTables,
    FindingTables,
    MoneyTables,
    ReratingTables,
    RoutingTables,
    TenantTables {
  setting: SettingTable
  node: InstanceTable
  share: ShareTable
  source_ban: SourceBanTable
}
