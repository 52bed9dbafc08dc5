/** A finding of `find_anomalies`: one incident. */
import { z } from 'zod'
import { timeToText } from '../../../schema/columns.ts'
import type { CertificateStatus } from '../../../schema/contracts/certificates.ts'
import type { EnginePort } from '../../../schema/contracts/engine.ts'
import type { HookTrouble } from '../../../schema/contracts/hooks.ts'
import type { InstancesPort } from '../../../schema/contracts/instances.ts'
import type { LossTrouble } from '../../../schema/contracts/losses.ts'
import type { OcsPort } from '../../../schema/contracts/charging.ts'
import type { Store } from '../../../schema/storage/store.ts'
import type { PeerRequests } from '../../instances/other-instances.ts'
import type { ChangeEntry } from '../../changes/change-store.ts'
import type { ChangeKind, Json } from '../../changes/kinds.ts'
import { moment, timeOrNull } from '../../http/view-fields.ts'
import type { Reports } from '../../reports/reports.ts'

export const kinds = [
  'spend',
  'destination',
  'wallet',
  'rate',
  'unknown_callers',
  'key_use',
  'node',
  'trunk',
  'registration',
  'capacity',
  'certificate',
  'payment',
  'hook',
  'margin',
] as const
export type FindingKind = (typeof kinds)[number]

const severities = ['critical', 'high', 'medium', 'low'] as const
type Severity = (typeof severities)[number]

const call = z.strictObject({ tool: z.string(), arguments: z.record(z.string(), z.unknown()) })

const changeFields = {
  change_id: z.string().describe('For undo_change and list_changes.'),
  at: moment,
  tool: z.string().describe('The tool or the request that made it.'),
  by: z.string().nullable().describe('Who. Null: the credential lacks audit:read.'),
  reason: z.string().nullable(),
  expires_at: moment.nullable().describe('When the platform undoes it.'),
}

export const findingView = z.strictObject({
  kind: z.enum(kinds),
  severity: z.enum(severities),
  subject: z.string().describe('Such as "customer 7" or "key <uuid>".'),
  what: z.string().describe('With figures, against the past of the same subject.'),
  first_at: moment,
  last_at: moment,
  figures: z.record(z.string(), z.number()).describe('The numbers of `what`, and flags as 0 or 1.'),
  evidence: z
    .array(z.string())
    .max(5)
    .describe(
      'Uuids of calls or keys, correlation ids of the audit log, addresses, or names of payments.',
    ),
  advice: z.string().describe('What to do about it, in a sentence.'),
  next: call.describe('The tool to ask next.'),
  first_step: call
    .nullable()
    .describe('A change that can be undone. Null: a person has to act. Try it with dry_run.'),
  handled_by: z
    .strictObject({
      ...changeFields,
      seen_since: z.boolean().describe('It has gone on since: the change may not be enough.'),
    })
    .nullable()
    .describe('The change in force that deals with it. Null: there is none.'),
  caused_by: z
    .strictObject(changeFields)
    .nullable()
    .describe('The change in force that made it so, such as a node taken out by hand.'),
})

export type FindingView = z.output<typeof findingView>

export interface ToolCall {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** Which changes in force deal with a finding. */
export interface Remedy {
  readonly kind: ChangeKind
  /**
   * Targets, each of which must have such a change; absent: one change of any target of the kind.
   */
  readonly ids?: readonly string[]
  /**
   * Whether the state after a change deals with it; undefined: the change is about something else.
   */
  readonly fits: (after: Json | null) => boolean | undefined
  /** It lasts until now, whether or not the change deals with it. */
  readonly isState?: true
}

/** Times in milliseconds UTC. */
export interface Finding {
  readonly kind: FindingKind
  readonly severity: Severity
  readonly subject: string
  /** The owner of the subject; absent: the subject says it. */
  readonly ownerId?: number | null
  readonly what: string
  readonly firstAt: number
  readonly lastAt: number
  readonly figures: Readonly<Record<string, number>>
  readonly evidence: readonly string[]
  readonly advice: string
  readonly next: ToolCall
  readonly firstStep: ToolCall | null
  readonly remedy?: Remedy | undefined
  readonly handledBy?: ChangeEntry | undefined
  readonly causedBy?: ChangeEntry | undefined
}

/** @param isActorShown the credential may read the audit log. */
export function findingViewOf(finding: Finding, isActorShown: boolean): FindingView {
  const { handledBy, causedBy, remedy, lastAt } = finding
  const changeOf = ({ change_id, at, tool, actor, actor_name, ...entry }: ChangeEntry) => ({
    change_id,
    at: timeToText(at),
    tool,
    by: isActorShown ? (actor_name ?? actor) : null,
    reason: entry.reason,
    expires_at: timeOrNull(entry.expires_at),
  })
  const isSeenSince = (entry: ChangeEntry): boolean =>
    remedy?.isState !== true && lastAt > entry.at + SETTLING_MS
  return {
    kind: finding.kind,
    severity: finding.severity,
    subject: finding.subject,
    what: finding.what,
    first_at: timeToText(finding.firstAt),
    last_at: timeToText(lastAt),
    figures: { ...finding.figures },
    evidence: finding.evidence.slice(0, 5),
    advice: finding.advice,
    next: { tool: finding.next.tool, arguments: { ...finding.next.arguments } },
    first_step: finding.firstStep && {
      tool: finding.firstStep.tool,
      arguments: { ...finding.firstStep.arguments },
    },
    handled_by: handledBy ? { ...changeOf(handledBy), seen_since: isSeenSince(handledBy) } : null,
    caused_by: causedBy ? changeOf(causedBy) : null,
  }
}

/** Calls that are counted by minute are seen until the end of theirs. */
const SETTLING_MS = 60_000

/** Puts findings that nobody deals with first, of those the worst, then the latest. */
export const bySeverity = (one: Finding, other: Finding): number =>
  Number(one.handledBy !== undefined) - Number(other.handledBy !== undefined) ||
  severities.indexOf(one.severity) - severities.indexOf(other.severity) ||
  other.lastAt - one.lastAt ||
  (one.subject < other.subject ? -1 : 1)

/** Dependencies of the search for anomalies, and its tenant. */
export interface AnomalyDeps {
  readonly store: Store
  readonly reports: Pick<Reports, 'findUnusual'>
  readonly engine: EnginePort
  readonly instances: Pick<InstancesPort, 'list'>
  /** Undefined: another system charges. */
  readonly ocs: Pick<OcsPort, 'balanceOf'> | undefined
  readonly peers?: PeerRequests | undefined
  /** Certificates of this process; absent: it has none. */
  readonly certificates?: (() => readonly CertificateStatus[]) | undefined
  /** Failures of the operator's code; absent: there is none. */
  readonly hookTroubles?: (() => readonly HookTrouble[]) | undefined
  /** Answered calls at a loss; absent: another system charges. */
  readonly lossTroubles?: (() => readonly LossTrouble[]) | undefined
  readonly tenantId: number | null
  /** The only SIP domain whose keys are searched; null: all. */
  readonly domain: string | null
  /** Yields to the event loop. */
  readonly pause: () => Promise<void>
  /** Milliseconds UTC. */
  readonly now: () => number
}

/** Milliseconds UTC; `before` is exclusive. */
export interface Span {
  readonly from: number
  readonly before: number
}
