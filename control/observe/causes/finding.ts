/** A finding of `find_anomalies`: one incident. */
import { z } from 'zod'
import { timeToText } from '../../../schema/columns.ts'
import type { EnginePort } from '../../../schema/contracts/engine.ts'
import type { OcsPort } from '../../../schema/contracts/charging.ts'
import type { Store } from '../../../schema/open.ts'
import type { PeerRequests } from '../../nodes/other-nodes.ts'
import { moment } from '../../http/view-fields.ts'
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
] as const
export type Kind = (typeof kinds)[number]

const severities = ['critical', 'high', 'medium', 'low'] as const
type Severity = (typeof severities)[number]

const call = z.strictObject({ tool: z.string(), arguments: z.record(z.string(), z.unknown()) })

export const findingView = z.strictObject({
  kind: z.enum(kinds),
  severity: z.enum(severities),
  subject: z.string().describe('Such as "customer 7" or "key <uuid>".'),
  what: z.string().describe('With figures, against the past of the same subject.'),
  first_at: moment,
  last_at: moment,
  evidence: z
    .array(z.string())
    .max(5)
    .describe('Uuids of calls or keys, correlation ids of the audit log, or addresses.'),
  next: call.describe('The tool to ask next.'),
  first_step: call
    .nullable()
    .describe('A change that can be undone. Null: a person has to act. Try it with dry_run.'),
})

export type FindingView = z.output<typeof findingView>

export interface Call {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** Times in milliseconds UTC. */
export interface Finding {
  readonly kind: Kind
  readonly severity: Severity
  readonly subject: string
  readonly what: string
  readonly firstAt: number
  readonly lastAt: number
  readonly evidence: readonly string[]
  readonly next: Call
  readonly firstStep: Call | null
}

export const findingViewOf = (finding: Finding): FindingView => ({
  kind: finding.kind,
  severity: finding.severity,
  subject: finding.subject,
  what: finding.what,
  first_at: timeToText(finding.firstAt),
  last_at: timeToText(finding.lastAt),
  evidence: finding.evidence.slice(0, 5),
  next: { tool: finding.next.tool, arguments: { ...finding.next.arguments } },
  first_step: finding.firstStep && {
    tool: finding.firstStep.tool,
    arguments: { ...finding.firstStep.arguments },
  },
})

/** The worst first, then the latest. */
export const bySeverity = (one: Finding, other: Finding): number =>
  severities.indexOf(one.severity) - severities.indexOf(other.severity) ||
  other.lastAt - one.lastAt ||
  (one.subject < other.subject ? -1 : 1)

/** Dependencies of the search for anomalies, and its tenant. */
export interface AnomalyDeps {
  readonly store: Store
  readonly reports: Pick<Reports, 'findUnusual'>
  readonly engine: EnginePort
  /** Undefined: another system charges. */
  readonly ocs: Pick<OcsPort, 'balanceOf'> | undefined
  readonly peers?: PeerRequests | undefined
  readonly tenantId: number | null
  /** The only SIP domain whose keys are searched; null: all. */
  readonly domain: string | null
  /** Yields to the event loop. */
  readonly pause: () => Promise<void>
}

/** Milliseconds UTC; `before` is exclusive. */
export interface Span {
  readonly from: number
  readonly before: number
}
