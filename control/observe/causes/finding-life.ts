/**
 * The life of findings: a search opens what it finds first, and what it does not find any more is
 * closed after a while, so that a state that comes and goes is one finding. Pure.
 */
import { cleanText } from '../../http/clean-text.ts'
import { bySeverity, type Finding } from './finding.ts'

/** Findings beyond, the least severe ones, are not kept. */
const MAX_OPEN_FINDINGS = 500
/** A finding is closed when the searches of so long have not found it. */
const CLOSE_AFTER_MS = 5 * 60_000
const MAX_SUBJECT = 300

/** A finding with its owner, by the name under which it is kept. */
export interface OwnedFinding {
  readonly tenantId: number | null
  readonly identity: string
  readonly finding: Finding
}

/** An open row of an earlier search. */
interface OpenFinding {
  readonly id: number
  readonly tenant_id: number | null
  readonly identity: string
  /** Milliseconds UTC; null: the last search has found it. */
  readonly missed_since: number | null
}

export interface FindingChanges<Row> {
  readonly opened: readonly OwnedFinding[]
  readonly seen: readonly { readonly row: Row; readonly finding: Finding }[]
  /** This search does not find them; they may come back. */
  readonly missed: readonly Row[]
  readonly closed: readonly Row[]
}

/**
 * Compares the open rows with what a search has found.
 *
 * @param isAfterGap nobody has searched for a while: nothing has been missed before now.
 */
export function changesBy<Row extends OpenFinding>(
  open: readonly Row[],
  found: readonly OwnedFinding[],
  { now, isAfterGap }: { readonly now: number; readonly isAfterGap: boolean },
): FindingChanges<Row> {
  const kept = new Map<string, OwnedFinding>()
  for (const each of found.toSorted((one, other) => bySeverity(one.finding, other.finding))) {
    if (kept.size >= MAX_OPEN_FINDINGS) break
    if (!kept.has(keyOf(each))) kept.set(keyOf(each), each)
  }
  const rows = new Map(open.map((row) => [rowKeyOf(row), row]))
  const lost = open.filter((row) => !kept.has(rowKeyOf(row)))
  const isOver = ({ missed_since: since }: Row): boolean =>
    !isAfterGap && since !== null && now - since >= CLOSE_AFTER_MS
  return {
    opened: [...kept.values()].filter((each) => !rows.has(keyOf(each))),
    seen: open.flatMap((row) => {
      const finding = kept.get(rowKeyOf(row))?.finding
      return finding === undefined ? [] : [{ row, finding }]
    }),
    missed: lost.filter((row) => !isOver(row)),
    closed: lost.filter(isOver),
  }
}

const keyOf = ({ tenantId, identity }: Pick<OwnedFinding, 'tenantId' | 'identity'>): string =>
  `${tenantId ?? 0} ${identity}`

const rowKeyOf = ({ tenant_id: tenantId, identity }: OpenFinding): string =>
  keyOf({ tenantId, identity })

/** The name of an incident, whatever its figures, its evidence and its next step are. */
export function identityOf({ kind, subject, firstStep }: Finding): string {
  const { prefix } = firstStep?.arguments ?? {}
  return JSON.stringify([
    kind,
    cleanText(subject).slice(0, MAX_SUBJECT),
    typeof prefix === 'string' ? prefix : null,
  ])
}
