/** Every migration, oldest first. Once released, a migration is never edited: add the next one. */
import { sql as callsAndMoney } from './001-calls-and-money.ts'
import { sql as access } from './002-access.ts'
import { sql as registrations } from './003-registrations.ts'
import { sql as payments } from './004-payments.ts'
import { sql as agents } from './005-agents.ts'
import { sql as webhooks } from './006-webhooks.ts'
import { sql as listsAndRetention } from './007-lists-and-retention.ts'
import { sql as reportIndexes } from './008-report-indexes.ts'
import { sql as carrierPrices } from './009-carrier-prices.ts'
import { sql as webhookBacklog } from './010-webhook-backlog.ts'
import { sql as depletedWallets } from './011-depleted-wallets.ts'
import { sql as carrierPayer } from './012-carrier-payer.ts'
import { relaxed as relaxedNames, sql as namesOfTenants } from './013-names-of-tenants.ts'
import { sql as refusedCalls } from './014-refused-calls.ts'
import { sql as tenantNumbers } from './015-tenant-numbers.ts'
import { sql as auditedNames } from './016-audited-names.ts'
import { sql as callJournalFile } from './017-call-journal-file.ts'
import { sql as mediaQuality } from './018-media-quality.ts'
import { relaxed as relaxedMedia, sql as mediaRules } from './019-media-rules.ts'
import { sql as recordings } from './020-recordings.ts'
import { sql as consoleFigures } from './021-console-figures.ts'
import { sql as recordingError } from './022-recording-error.ts'
import { sql as rateIdentity } from './023-rate-identity.ts'
import { forServer as changesForServer, sql as changes } from './024-changes.ts'
import { sql as webhookClaims } from './025-webhook-claims.ts'
import { sql as walletLeases } from './026-wallet-leases.ts'
import { sql as nodes } from './027-nodes.ts'
import { forServer as extensionIdsForServer, sql as bindingNode } from './028-binding-node.ts'
import { forServer as limitsForServer, sql as sharedLimits } from './029-shared-limits.ts'
import type { Relaxed } from '../rebuild.ts'

export interface Migration {
  /** 1, 2, 3 … without gaps. */
  readonly version: number
  readonly name: string
  /** Constraints to remove before `sql` runs. */
  readonly relaxed?: readonly Relaxed[]
  readonly sql: string
  /** What a PostgreSQL database gets beside it. */
  readonly forServer?: string
}

export const migrations: readonly Migration[] = [
  { version: 1, name: 'calls-and-money', sql: callsAndMoney },
  { version: 2, name: 'access', sql: access },
  { version: 3, name: 'registrations', sql: registrations },
  { version: 4, name: 'payments', sql: payments },
  { version: 5, name: 'agents', sql: agents },
  { version: 6, name: 'webhooks', sql: webhooks },
  { version: 7, name: 'lists-and-retention', sql: listsAndRetention },
  { version: 8, name: 'report-indexes', sql: reportIndexes },
  { version: 9, name: 'carrier-prices', sql: carrierPrices },
  { version: 10, name: 'webhook-backlog', sql: webhookBacklog },
  { version: 11, name: 'depleted-wallets', sql: depletedWallets },
  { version: 12, name: 'carrier-payer', sql: carrierPayer },
  { version: 13, name: 'names-of-tenants', relaxed: relaxedNames, sql: namesOfTenants },
  { version: 14, name: 'refused-calls', sql: refusedCalls },
  { version: 15, name: 'tenant-numbers', sql: tenantNumbers },
  { version: 16, name: 'audited-names', sql: auditedNames },
  { version: 17, name: 'call-journal-file', sql: callJournalFile },
  { version: 18, name: 'media-quality', sql: mediaQuality },
  { version: 19, name: 'media-rules', relaxed: relaxedMedia, sql: mediaRules },
  { version: 20, name: 'recordings', sql: recordings },
  { version: 21, name: 'console-figures', sql: consoleFigures },
  { version: 22, name: 'recording-error', sql: recordingError },
  { version: 23, name: 'rate-identity', sql: rateIdentity },
  { version: 24, name: 'changes', sql: changes, forServer: changesForServer },
  { version: 25, name: 'webhook-claims', sql: webhookClaims },
  { version: 26, name: 'wallet-leases', sql: walletLeases },
  { version: 27, name: 'nodes', sql: nodes },
  {
    version: 28,
    name: 'binding-node',
    sql: bindingNode,
    forServer: extensionIdsForServer,
  },
  { version: 29, name: 'shared-limits', sql: sharedLimits, forServer: limitsForServer },
]

export const newestVersion = migrations.length
