/**
 * Every migration, oldest first. Once released, a migration is never edited: add the next one, in `several-nodes/`, which
 * began when nodes could share a database.
 */
import { sql as callsAndMoney } from './one-process/001-calls-and-money.ts'
import { sql as access } from './one-process/002-access.ts'
import { sql as registrations } from './one-process/003-registrations.ts'
import { sql as payments } from './one-process/004-payments.ts'
import { sql as agents } from './one-process/005-agents.ts'
import { sql as webhooks } from './one-process/006-webhooks.ts'
import { sql as listsAndRetention } from './one-process/007-lists-and-retention.ts'
import { sql as reportIndexes } from './one-process/008-report-indexes.ts'
import { sql as carrierPrices } from './one-process/009-carrier-prices.ts'
import { sql as webhookBacklog } from './one-process/010-webhook-backlog.ts'
import { sql as depletedWallets } from './one-process/011-depleted-wallets.ts'
import { sql as carrierPayer } from './one-process/012-carrier-payer.ts'
import {
  relaxed as relaxedNames,
  sql as namesOfTenants,
} from './one-process/013-names-of-tenants.ts'
import { sql as refusedCalls } from './one-process/014-refused-calls.ts'
import { sql as tenantNumbers } from './one-process/015-tenant-numbers.ts'
import { sql as auditedNames } from './one-process/016-audited-names.ts'
import { sql as callJournalFile } from './one-process/017-call-journal-file.ts'
import { sql as mediaQuality } from './one-process/018-media-quality.ts'
import { relaxed as relaxedMedia, sql as mediaRules } from './one-process/019-media-rules.ts'
import { sql as recordings } from './one-process/020-recordings.ts'
import { sql as consoleFigures } from './one-process/021-console-figures.ts'
import { sql as recordingError } from './one-process/022-recording-error.ts'
import { sql as rateIdentity } from './one-process/023-rate-identity.ts'
import { forServer as changesForServer, sql as changes } from './several-nodes/024-changes.ts'
import { sql as webhookClaims } from './several-nodes/025-webhook-claims.ts'
import { sql as walletLeases } from './several-nodes/026-wallet-leases.ts'
import { sql as nodes } from './several-nodes/027-nodes.ts'
import {
  forServer as extensionIdsForServer,
  sql as bindingNode,
} from './several-nodes/028-binding-node.ts'
import {
  forServer as limitsForServer,
  sql as sharedLimits,
} from './several-nodes/029-shared-limits.ts'
import {
  forServer as sharesForServer,
  sql as limitShares,
} from './several-nodes/030-limit-shares.ts'
import { sql as longestGrant } from './several-nodes/031-longest-grant.ts'
import { sql as nodeAddresses } from './several-nodes/032-node-addresses.ts'
import { forServer as sumsForServer, sql as callSums } from './several-nodes/033-call-sums.ts'
import {
  forServer as operatorChangesForServer,
  sql as operatorChanges,
} from './several-nodes/034-operator-changes.ts'
import { sql as causes } from './several-nodes/035-causes.ts'
import { sql as proposals } from './several-nodes/036-proposals.ts'
import {
  forServer as spendGuardsForServer,
  sql as spendGuards,
} from './several-nodes/037-spend-guards.ts'
import { sql as mcpSessions } from './several-nodes/038-mcp-sessions.ts'
import { sql as wrongPasswords } from './several-nodes/039-wrong-passwords.ts'
import {
  forServer as rateSumsForServer,
  sql as rateSums,
} from './several-nodes/040-sums-by-rate-prefix.ts'
import {
  forServer as banVersionsForServer,
  sql as banVersions,
} from './several-nodes/041-versions-of-bans.ts'
import { onceOnly, sql as neverAgain } from './several-nodes/042-never-again.ts'
import { sql as reportClaims } from './several-nodes/043-report-claims.ts'
import { sql as tokensAndTargets } from './several-nodes/044-tokens-and-targets.ts'
import {
  forServer as changedRowsForServer,
  sql as changedRows,
} from './several-nodes/045-changed-rows.ts'
import { sql as timeWithoutServer } from './several-nodes/046-time-without-server.ts'
import { sql as tenantsDestinations } from './several-nodes/047-tenants-destinations.ts'
import { sql as denialText } from './several-nodes/048-denial-text.ts'
import { sql as nodeOfCalls } from './several-nodes/049-node-of-calls.ts'
import type { OnceOnly, Relaxed } from '../rebuild.ts'

export interface Migration {
  /** 1, 2, 3 … without gaps. */
  readonly version: number
  readonly name: string
  /** Constraints to remove before `sql` runs. */
  readonly relaxed?: readonly Relaxed[]
  readonly sql: string
  /** On SQLite, before `sql`: a PostgreSQL server gives no id twice. */
  readonly onceOnly?: OnceOnly
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
  { version: 30, name: 'limit-shares', sql: limitShares, forServer: sharesForServer },
  { version: 31, name: 'longest-grant', sql: longestGrant },
  { version: 32, name: 'node-addresses', sql: nodeAddresses },
  { version: 33, name: 'call-sums', sql: callSums, forServer: sumsForServer },
  {
    version: 34,
    name: 'operator-changes',
    sql: operatorChanges,
    forServer: operatorChangesForServer,
  },
  { version: 35, name: 'causes', sql: causes },
  { version: 36, name: 'proposals', sql: proposals },
  { version: 37, name: 'spend-guards', sql: spendGuards, forServer: spendGuardsForServer },
  { version: 38, name: 'mcp-sessions', sql: mcpSessions },
  { version: 39, name: 'wrong-passwords', sql: wrongPasswords },
  { version: 40, name: 'sums-by-rate-prefix', sql: rateSums, forServer: rateSumsForServer },
  { version: 41, name: 'versions-of-bans', sql: banVersions, forServer: banVersionsForServer },
  { version: 42, name: 'never-again', onceOnly, sql: neverAgain },
  { version: 43, name: 'report-claims', sql: reportClaims },
  { version: 44, name: 'tokens-and-targets', sql: tokensAndTargets },
  {
    version: 45,
    name: 'changed-rows',
    sql: changedRows,
    forServer: changedRowsForServer,
  },
  { version: 46, name: 'time-without-server', sql: timeWithoutServer },
  { version: 47, name: 'tenants-destinations', sql: tenantsDestinations },
  { version: 48, name: 'denial-text', sql: denialText },
  { version: 49, name: 'node-of-calls', sql: nodeOfCalls },
]

export const newestVersion = migrations.length
