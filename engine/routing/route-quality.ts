/**
 * Whether the carrier of a route does well enough to be tried in its place (D405 to D407). A route
 * is `low` once a figure of enough calls is below its floor. It comes back when its calls are well
 * above all floors, or for a trial after a rest, which doubles each time that a trial fails.
 */
import type {
  QualityFault,
  QualityFigures,
  QualityFloors,
  QualityState,
  RestoredBy,
  RouteQualityStatus,
} from '../../schema/contracts/route-quality.ts'
import { DAY_MS } from '../../schema/clock.ts'
import { QualityWindow } from './quality-window.ts'

/** A figure is good again once it is better than its floor by this part of it. */
const MARGIN = 0.1
/** A rest is at most so many windows. */
const MOST_WINDOWS = 8

export interface MeasuredRoute {
  readonly routeId: number
  readonly name: string
  readonly tenantId: number | null
  readonly carrierId: number
  readonly floors: QualityFloors
}

/** A route has become low, or is tried in its place again. */
export type QualityChange =
  { readonly kind: 'low' } | { readonly kind: 'restored'; readonly by: RestoredBy }

export class RouteQuality {
  /** It may get another name. */
  route: MeasuredRoute
  readonly #onChange: (change: QualityChange) => void
  readonly #window: QualityWindow
  #state: QualityState = 'good'
  #since: number
  #until: number | null = null
  /** How often it has become low without being good in between. */
  #falls = 0
  #fallen: RouteQualityStatus['fallen'] = null

  constructor(route: MeasuredRoute, now: number, onChange: (change: QualityChange) => void) {
    this.route = route
    this.#onChange = onChange
    this.#window = new QualityWindow(route.floors.windowSeconds, now)
    this.#since = now
  }

  /** When the rest of a low route is over; null: it is not low. */
  get until(): number | null {
    return this.#until
  }

  addAttempt(now: number, isAnswered: boolean, delayMs: number | null): void {
    this.follow(now)
    this.#window.addAttempt(now, isAnswered, delayMs)
    this.#judge(now)
  }

  addTalk(now: number, talkMs: number): void {
    this.follow(now)
    this.#window.addTalk(now, talkMs)
    this.#judge(now)
  }

  /** Whether the route is tried after all others at this moment. Changes nothing. */
  isLow(now: number): boolean {
    return this.#until !== null && now < this.#until
  }

  /** Begins the trial of a low route whose rest is over. */
  follow(now: number): void {
    if (this.#until === null || now < this.#until) return
    this.#enter('trial', now)
    this.#onChange({ kind: 'restored', by: 'trial' })
  }

  status(now: number): Omit<RouteQualityStatus, 'carrier'> {
    const { routeId, name: route, tenantId, carrierId, floors } = this.route
    return {
      routeId,
      route,
      carrierId,
      tenantId,
      floors,
      state: this.#state,
      figures: this.#window.figures(now),
      since: this.#since,
      until: this.#until,
      fallen: this.#fallen,
    }
  }

  #judge(now: number): void {
    const figures = this.#window.figures(now)
    if (this.#state !== 'low') {
      const faults = faultsOf(figures, this.route.floors)
      if (faults.length > 0) return this.#fall(now, figures, faults)
      if (this.#state === 'good') return undefined
    }
    if (!isProved(figures, this.route.floors)) return undefined
    const wasLow = this.#state === 'low'
    this.#falls = 0
    this.#fallen = null
    if (!wasLow) this.#state = 'good'
    else {
      this.#enter('good', now)
      this.#onChange({ kind: 'restored', by: 'measured' })
    }
    return undefined
  }

  #fall(now: number, figures: QualityFigures, faults: readonly QualityFault[]): void {
    const windowMs = this.route.floors.windowSeconds * 1_000
    const windows = Math.min(2 ** this.#falls, MOST_WINDOWS)
    this.#falls += 1
    this.#fallen = { figures, faults }
    this.#enter('low', now)
    this.#until = now + Math.min(windows * windowMs, Math.max(windowMs, DAY_MS))
    this.#onChange({ kind: 'low' })
  }

  /** Figures from now on are judged alone. */
  #enter(state: QualityState, now: number): void {
    this.#state = state
    this.#since = now
    this.#until = null
    this.#window.clear()
  }
}

type JudgedFigures = ReturnType<QualityWindow['figures']>

/** The figures of enough calls that are worse than their floors. */
function faultsOf(figures: JudgedFigures, floors: QualityFloors): readonly QualityFault[] {
  const { asr, acdSeconds, pddMs, attempts, ended, delayed } = figures
  const { minAsr, minAcdSeconds, maxPddMs, minCalls } = floors
  const faults: QualityFault[] = []
  if (minAsr !== null && asr !== null && attempts >= minCalls && asr < minAsr) faults.push('asr')
  if (minAcdSeconds !== null && acdSeconds !== null && ended >= minCalls)
    if (acdSeconds < minAcdSeconds) faults.push('acd')
  if (maxPddMs !== null && pddMs !== null && delayed >= minCalls)
    if (pddMs > maxPddMs) faults.push('pdd')
  return faults
}

/** Whether enough calls are better than each floor, by the margin. */
function isProved(figures: JudgedFigures, floors: QualityFloors): boolean {
  const { asr, acdSeconds, pddMs, attempts, ended, delayed } = figures
  const { minAsr, minAcdSeconds, maxPddMs, minCalls } = floors
  // A floor of 95 % has no margin above 100 %.
  if (minAsr !== null)
    if (attempts < minCalls || (asr ?? 0) < Math.min(100, minAsr * (1 + MARGIN))) return false
  if (minAcdSeconds !== null)
    if (ended < minCalls || (acdSeconds ?? 0) < minAcdSeconds * (1 + MARGIN)) return false
  if (maxPddMs !== null)
    if (delayed < minCalls || (pddMs ?? Infinity) > maxPddMs * (1 - MARGIN)) return false
  return true
}
