/** Findings in the operator's code: hooks and routing webhooks that fail. */
import { timeToText } from '../../../schema/columns.ts'
import type { HookTrouble } from '../../../schema/contracts/hooks.ts'
import { plural } from '../../http/clean-text.ts'
import type { AnomalyDeps, Finding, Span } from './finding.ts'

/** The platform's operator sees all of it, a tenant the routing webhooks that are its own. */
export function findHooks(
  { hookTroubles, tenantId }: Pick<AnomalyDeps, 'hookTroubles' | 'tenantId'>,
  { from, before }: Span,
): readonly Finding[] {
  if (hookTroubles === undefined) return []
  return hookTroubles()
    .filter(({ webhook }) => tenantId === null || webhook?.tenantId === tenantId)
    .filter(({ firstAt, lastAt }) => lastAt >= from && firstAt < before)
    .map(findingOf)
}

function findingOf({
  by,
  hook,
  message,
  file,
  line,
  count,
  firstAt,
  lastAt,
  webhook,
}: HookTrouble): Finding {
  const what = hook === null || webhook !== undefined ? by : `${hook} of ${by}`
  return {
    kind: 'hook',
    severity: 'high',
    subject: webhook !== undefined ? by : hook === null ? `file ${by}` : `hook ${hook}`,
    what:
      `${what} has failed ${plural(count, 'time')} since ${timeToText(firstAt)}; the last ` +
      `failure: ${message}`,
    firstAt,
    lastAt,
    figures: { failures: count },
    evidence: file === null ? [] : [line === null ? file : `${file}:${line}`],
    advice: webhook === undefined ? adviceForFile : adviceForWebhook(webhook.id),
    next: { tool: 'get_telemetry', arguments: {} },
    firstStep: null,
  }
}

const adviceForFile =
  'Correct the code. A changed file is loaded within seconds, without a restart; until then ' +
  'calls get what HOOKS_FALLBACK says.'

const adviceForWebhook = (id: number): string =>
  `Correct the receiver, and try it with POST /api/v1/routing-webhooks/${id}/test; until then ` +
  'calls get what its fallback says.'
