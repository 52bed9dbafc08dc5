/** Plans of calls about which the application is asked first. Pure. */
import { hookFailed } from '../cdr/end-reason.ts'
import type { RoutePlan } from '../inbound/admission.ts'
import { isOurSide } from '../inbound/route.ts'
import type { Origin } from '../../routing/routing.ts'
import type { ApplicationRuns } from './application-runs.ts'
import { leadsNowhere } from './asked-first.ts'

/**
 * The plan of a call that an INVITE has begun. What our own side dials stays free where only the
 * application may know it; a call from outside is authorized first, as any inbound one.
 */
export function withApplication(
  plan: RoutePlan,
  origin: Origin,
  {
    applications,
    retryAfterSeconds,
  }: {
    readonly applications?: Pick<ApplicationRuns, 'candidate' | 'isMissed'> | undefined
    readonly retryAfterSeconds: number
  },
): RoutePlan {
  if (applications === undefined || plan.isEmergency || plan.refusal) return plan
  if (applications.isMissed) return { ...plan, refusal: hookFailed(retryAfterSeconds) }
  const application = applications.candidate()
  if (application === undefined) return plan
  const { route } = plan
  if (route?.kind !== 'refused') return { ...plan, application }
  if (!leadsNowhere(route.end)) return plan
  if (!isOurSide(origin)) return { ...plan, route: undefined, application }
  const { direction, end } = route
  return {
    ...plan,
    route: { kind: 'candidates', direction, candidates: [], otherwise: end },
    application,
  }
}
