/** Which changes in force deal with a finding, or made it so. */
import type { ChangeEntry } from '../../changes/change-store.ts'
import { stateIn } from '../../changes/change-store.ts'
import { fieldsOf, type ChangeKind, type FieldState } from '../../changes/kinds.ts'
import { all } from '../../../schema/sql/query.ts'
import type { AnomalyDeps, Finding, Remedy } from './finding.ts'

/** The newest ones: about 5 ms. */
const MAX_CHANGES = 1_000

/**
 * Findings with the change that deals with them, if there is one that was made after they began.
 */
export async function withHandling(
  deps: AnomalyDeps,
  findings: readonly Finding[],
): Promise<readonly Finding[]> {
  const kinds = new Set(findings.flatMap(({ remedy }) => remedy?.kind ?? []))
  if (kinds.size === 0) return findings
  const since = Math.min(...findings.map(({ firstAt }) => firstAt))
  const changes = await changesInForce(deps, [...kinds], { since })
  return findings.map((finding) => {
    const { remedy, firstAt, handledBy } = finding
    if (remedy === undefined || handledBy !== undefined) return finding
    const later = changes.filter(({ at }) => at >= firstAt)
    return { ...finding, handledBy: handlingIn(later, remedy) }
  })
}

/** `changes`: newest first. */
function handlingIn(
  changes: readonly ChangeEntry[],
  { kind, ids, fits }: Remedy,
): ChangeEntry | undefined {
  const ofKind = changes.filter((change) => change.target_kind === kind)
  const fitting = (some: readonly ChangeEntry[]) => {
    for (const change of some) {
      const isFit = fits(stateIn(change.state_after))
      if (isFit !== undefined) return isFit ? change : undefined
    }
    return undefined
  }
  if (ids === undefined) return ofKind.find((change) => fits(stateIn(change.state_after)) === true)
  const found = ids.map((id) => fitting(ofKind.filter((change) => change.target_id === id)))
  return found.every((change) => change !== undefined) ? found[0] : undefined
}

/** The newest change in force of each target with this state after it. */
export async function changesTo(
  deps: AnomalyDeps,
  kind: ChangeKind,
  ids: readonly string[],
  isMeant: (change: ChangeEntry) => boolean,
): Promise<ReadonlyMap<string, ChangeEntry>> {
  if (ids.length === 0) return new Map()
  const changes = (await changesInForce(deps, [kind], { ids })).filter(isMeant)
  return new Map(changes.toReversed().map((change) => [change.target_id, change]))
}

/** Newest first; a tenant sees its own. */
function changesInForce(
  { store, tenantId, now }: AnomalyDeps,
  kinds: readonly ChangeKind[],
  { ids, since }: { readonly ids?: readonly string[]; readonly since?: number },
): Promise<readonly ChangeEntry[]> {
  const query = store.db
    .selectFrom('change_entry')
    .selectAll()
    .where('state', '=', 'made')
    .where('target_kind', 'in', kinds)
    .where((row) => row.or([row('expires_at', 'is', null), row('expires_at', '>', now())]))
    .$if(ids !== undefined, (own) => own.where('target_id', 'in', ids ?? []))
    .$if(since !== undefined, (own) => own.where('at', '>=', since ?? 0))
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId))
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(MAX_CHANGES)
  return all(store, query)
}

/** `fits` of a remedy that sets fields: whether a change set one of them, whatever to. */
export const setsField =
  (...names: readonly string[]): Remedy['fits'] =>
  (after) => {
    const fields: FieldState = fieldsOf(after) ?? {}
    return names.some((name) => Object.hasOwn(fields, name)) ? true : undefined
  }
