/** Findings about carriers that are below the floors of a route, so that it is tried last. */
import { quoted } from '../../http/clean-text.ts'
import { lowQualityText, shownFigures } from '../../http/quality-figures.ts'
import type { AnomalyDeps, Finding, Span } from './finding.ts'

/** Those of this moment: each instance measures its own calls. */
export function findLowQuality(
  { engine, tenantId }: Pick<AnomalyDeps, 'engine' | 'tenantId'>,
  { from, before }: Span,
): readonly Finding[] {
  return engine.quality.all().flatMap((status): readonly Finding[] => {
    const { route, carrier, state, fallen, since } = status
    const isTheirs = tenantId === null || status.tenantId === tenantId
    if (state !== 'low' || fallen === null || !isTheirs || since >= before) return []
    const figures = Object.entries(shownFigures(fallen.figures)).filter(
      (entry): entry is [string, number] => entry[1] !== null,
    )
    return [
      {
        kind: 'trunk',
        severity: 'medium',
        subject: `carrier ${quoted(carrier)}`,
        what:
          `carrier ${quoted(carrier)} is below the floors of route ${quoted(route)}: ` +
          `${lowQualityText(status)}.`,
        firstAt: Math.max(from, since),
        lastAt: before - 1,
        figures: Object.fromEntries(figures),
        evidence: [],
        advice:
          'Ask the carrier. Its calls take the next routes first until it is better; if none of ' +
          'them takes calls, it is still tried.',
        next: { tool: 'list_routes', arguments: { search: route } },
        firstStep: null,
      },
    ]
  })
}
