/** How well the carrier of an outbound route does: floors, figures, and the verdict on them. */

/** A route asks this of its carrier; null: any figure is good enough. */
export interface QualityFloors {
  /** Answered attempts of all, in per cent (answer seizure ratio, ITU-T E.425). */
  readonly minAsr: number | null
  /** Mean length of an answered call in seconds (average call duration). */
  readonly minAcdSeconds: number | null
  /** Mean time from the INVITE to the first ringing or answer (post-dial delay). */
  readonly maxPddMs: number | null
  readonly windowSeconds: number
  /** A figure is judged by so many calls. */
  readonly minCalls: number
}

/** Null: no call has given the figure. */
export interface QualityFigures {
  /** Attempts whose outcome is known. */
  readonly attempts: number
  readonly answered: number
  /** Answered calls that have ended. */
  readonly ended: number
  readonly asr: number | null
  readonly acdSeconds: number | null
  readonly pddMs: number | null
}

/** A figure that is below its floor, or above its ceiling. */
export type QualityFault = 'asr' | 'acd' | 'pdd'

/**
 * `good`: tried in its place. `low`: below a floor, so tried after all other routes. `trial`: tried
 * in its place again, until new calls have shown how it is now.
 */
export type QualityState = 'good' | 'low' | 'trial'

/** Times are those of the steady clock inside the engine, milliseconds UTC through `EnginePort`. */
export interface RouteQualityStatus {
  readonly routeId: number
  readonly route: string
  readonly carrierId: number
  readonly carrier: string
  /** Owner of the route; null: the platform. */
  readonly tenantId: number | null
  readonly floors: QualityFloors
  readonly state: QualityState
  /** Figures of the window, or of the time since the state has changed. */
  readonly figures: QualityFigures
  readonly since: number
  /** The trial begins then, unless its figures are good before; null: it is not low. */
  readonly until: number | null
  /** Figures that have made it low, and which of them; null: it is good. */
  readonly fallen: {
    readonly figures: QualityFigures
    readonly faults: readonly QualityFault[]
  } | null
}

/** `measured`: its calls are good enough. `trial`: its time is over. `changed`: by an operator. */
export type RestoredBy = 'measured' | 'trial' | 'changed'
