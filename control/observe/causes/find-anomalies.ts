/** The anomalies of a period, the worst first (D256). */
import { z } from 'zod'
import { timeToText } from '../../../schema/columns.ts'
import { readApart } from '../../../schema/sql/query.ts'
import { ApiError } from '../../http/api-error.ts'
import type { Principal } from '../../auth/principal.ts'
import { admitScope } from '../../auth/requires.ts'
import type { Scope } from '../../auth/scopes.ts'
import { identityOf } from './finding-life.ts'
import { FindingStore, stateOf } from './finding-store.ts'
import { inTurn } from '../../reports/searches.ts'
import { moment } from '../../http/view-fields.ts'
import { pageEnd, pageEndView } from '../../http/envelope.ts'
import { withHandling } from './changes-in-force.ts'
import { findCertificates } from './find-certificates.ts'
import { findHooks } from './find-hooks.ts'
import { findLosses } from './find-losses.ts'
import { findInCalls } from './find-calls.ts'
import { findInKeys } from './find-keys.ts'
import { findGuessing } from './find-guessing.ts'
import { findOutages } from './find-outages.ts'
import { findPayments } from './find-payments.ts'
import {
  type AnomalyDeps,
  bySeverity,
  type Finding,
  findingView,
  findingViewOf,
  type FindingKind,
  kinds,
  type Span,
} from './finding.ts'

export const MAX_FINDINGS = 50
/** So many findings have about 16 kB of text. */
export const USUAL_FINDINGS = 15

/** A finding as it is found now, with the one that is kept of it. */
const foundView = findingView.extend({
  id: z
    .int()
    .nullable()
    .describe('Of the finding that is kept (GET /findings/{id}). Null: found a moment ago.'),
  state: z.enum(['open', 'acknowledged', 'snoozed']).nullable().describe('Of the one kept.'),
})

export const anomaliesView = z.strictObject({
  start: moment,
  end: moment,
  findings: z
    .array(foundView)
    .describe('The worst first; those that a change in force deals with last.'),
  total: z.int().min(0),
  handled: z.int().min(0).describe('Of `total`, those that a change in force deals with.'),
  ...pageEndView,
  searched: z.array(z.enum(kinds)),
  skipped: z
    .array(z.strictObject({ kind: z.enum(kinds), needs: z.string() }))
    .describe('Kinds for which the credential has no scope.'),
})

export type AnomaliesView = z.output<typeof anomaliesView>

export type FoundView = z.output<typeof foundView>

export const needs: Readonly<Record<FindingKind, readonly Scope[]>> = {
  // The question itself needs `cdrs:read`.
  spend: ['customers:read'],
  destination: ['customers:read'],
  wallet: ['wallets:read'],
  rate: [],
  unknown_callers: [],
  key_use: ['keys:read', 'audit:read'],
  node: ['dispatcher:read'],
  trunk: ['carriers:read'],
  registration: ['carriers:read'],
  capacity: ['customers:read', 'dispatcher:read'],
  certificate: ['metrics:read'],
  payment: ['wallets:read'],
  hook: ['metrics:read'],
  margin: ['rates:read'],
}

export async function findAnomalies(
  deps: Omit<AnomalyDeps, 'tenantId' | 'domain'>,
  principal: Principal,
  {
    span,
    wanted,
    limit,
    offset = 0,
  }: {
    readonly span: Span
    readonly wanted: readonly FindingKind[]
    readonly limit: number
    readonly offset?: number
  },
): Promise<AnomaliesView> {
  const { tenantId, domain } = principal
  const lacking = lackingOf(principal, wanted)
  const searched = wanted.filter((kind) => !lacking.some((each) => each.kind === kind))
  const own: AnomalyDeps = { ...deps, tenantId, domain }
  const found = await findingsIn(own, span, new Set(searched), {
    // A credential may see carriers and no extensions.
    hasExtensions: isAdmitted(principal, 'extensions:read'),
  })
  const findings = found.toSorted(bySeverity)
  const isActorShown = isAdmitted(principal, 'audit:read')
  const listed = findings.slice(offset, offset + limit)
  return {
    start: timeToText(span.from),
    end: timeToText(span.before),
    findings: await withKept(own, listed, isActorShown),
    total: findings.length,
    handled: findings.filter(({ handledBy }) => handledBy !== undefined).length,
    ...pageEnd(offset + listed.length, findings.length),
    searched,
    skipped: lacking,
  }
}

/** Adds what is kept of each; where several owners have one of that name, the newest. */
async function withKept(
  { store, tenantId, now }: Pick<AnomalyDeps, 'store' | 'tenantId' | 'now'>,
  listed: readonly Finding[],
  isActorShown: boolean,
): Promise<FoundView[]> {
  const reader = { tenantId, now: now() }
  const kept = await new FindingStore(store).openOf(listed.map(identityOf), reader)
  const byIdentity = new Map(kept.map((row) => [row.identity, row]))
  return listed.map((finding) => {
    const row = byIdentity.get(identityOf(finding))
    const state = row === undefined ? null : stateOf(row, reader.now)
    return {
      ...findingViewOf(finding, isActorShown),
      id: row?.id ?? null,
      state: state === 'closed' ? null : state,
    }
  })
}

/** All findings of the tenant, each incident once, in no order. */
export async function findingsIn(
  own: AnomalyDeps,
  span: Span,
  kinds: ReadonlySet<FindingKind>,
  { hasExtensions }: { readonly hasExtensions: boolean },
): Promise<readonly Finding[]> {
  const find = async (): Promise<readonly Finding[]> => [
    ...(await findInCalls(own, span, kinds)),
    ...(kinds.has('key_use') ? await findInKeys(own, span) : []),
    ...(await findOutages(own, span, kinds)),
    ...(kinds.has('certificate') ? findCertificates(own) : []),
    ...(kinds.has('hook') ? findHooks(own, span) : []),
    ...(kinds.has('margin') ? findLosses(own, span) : []),
    ...(kinds.has('payment') ? await findPayments(own, span) : []),
    ...(kinds.has('registration') && hasExtensions ? await findGuessing(own, span) : []),
  ]
  const search = async () => withHandling(own, worstOfEach(await find()))
  return withoutRemedies(await inTurn(own, () => readApart(own.store, own.tenantId, search)))
}

/** Kinds for which the credential lacks a scope. */
export const lackingOf = (principal: Principal, wanted: readonly FindingKind[]) =>
  wanted.flatMap((kind) => {
    const scope = needs[kind].find((each) => !isAdmitted(principal, each))
    return scope === undefined ? [] : [{ kind, needs: scope }]
  })

export function isAdmitted(principal: Principal, scope: Scope): boolean {
  try {
    admitScope(principal, scope)
    return true
  } catch (error) {
    if (error instanceof ApiError) return false
    throw error
  }
}

/** A carrier that was taken out for what another finding says is no finding of its own. */
const withoutRemedies = (findings: readonly Finding[]): readonly Finding[] =>
  findings.filter(
    ({ causedBy }) =>
      causedBy === undefined ||
      !findings.some(({ handledBy }) => handledBy?.change_id === causedBy.change_id),
  )

/** A period of several days finds the same each day. */
function worstOfEach(found: readonly Finding[]): readonly Finding[] {
  const worst = new Map<string, Finding>()
  for (const finding of found) {
    const { prefix } = finding.firstStep?.arguments ?? {}
    const name = JSON.stringify([finding.kind, finding.subject, prefix, finding.next.tool])
    const known = worst.get(name)
    const firstAt = Math.min(finding.firstAt, known?.firstAt ?? finding.firstAt)
    if (known === undefined || bySeverity(finding, known) < 0)
      worst.set(name, { ...finding, firstAt })
    else worst.set(name, { ...known, firstAt })
  }
  return [...worst.values()]
}
