/** Findings in the operator's code: hooks and routing webhooks that fail. */
import { timeToText } from '../../../schema/columns.ts'
import type { HookTrouble } from '../../../schema/contracts/hooks.ts'
import { plural } from '../../http/clean-text.ts'
import type { AnomalyDeps, Finding, Span } from './finding.ts'

/** It is code of the platform's operator. */
export function findHooks(
  { hookTroubles, tenantId }: Pick<AnomalyDeps, 'hookTroubles' | 'tenantId'>,
  { from, before }: Span,
): readonly Finding[] {
  if (tenantId !== null || hookTroubles === undefined) return []
  return hookTroubles()
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
}: HookTrouble): Finding {
  const what = hook === null ? by : `${hook} of ${by}`
  return {
    kind: 'hook',
    severity: 'high',
    subject: hook === null ? `file ${by}` : `hook ${hook}`,
    what:
      `${what} has failed ${plural(count, 'time')} since ${timeToText(firstAt)}; the last ` +
      `failure: ${message}`,
    firstAt,
    lastAt,
    figures: { failures: count },
    evidence: file === null ? [] : [line === null ? file : `${file}:${line}`],
    advice:
      'Correct the code. A changed file is loaded within seconds, without a restart; until then ' +
      'calls get what HOOKS_FALLBACK says.',
    next: { tool: 'get_telemetry', arguments: {} },
    firstStep: null,
  }
}
