import type { Principal } from '../auth/principal.ts'
import type { RequestScope } from '../resources/resource.ts'
import type { ChangeWorld, Json } from './change-world.ts'

/** A kind of thing that can be brought back to the state it had. */
export interface RestorableKind {
  /**
   * Its state is in rows: it is read, restored and entered in one transaction, so `read`, `restore` and `admit` wait for
   * statements only. Otherwise the entry is written before the change, and settled after it.
   */
  readonly isRow: boolean
  /** Null: it is not there. */
  readonly read: (id: string, world: ChangeWorld) => Promise<Json | null>
  /**
   * Throws an `ApiError` when it cannot take that state now; nothing has changed then.
   *
   * @param asker may write no more than by a request of its own; the platform may write everywhere.
   */
  readonly restore: (
    id: string,
    state: Json | null,
    world: ChangeWorld,
    asker: RequestScope,
  ) => Promise<void>
  /** What becomes of it when its creation is undone, as in "is removed: it was not there", which it is when absent. */
  readonly uncreated?: string
  /** Whether a thing with the first state has the state of a change. Absent: they are the same JSON. */
  readonly isSame?: (state: Json | null, ofChange: Json | null) => boolean
  /** Whether two changes with these states are about the same. Absent: all changes of one thing are. */
  readonly isAbout?: (one: Json | null, other: Json | null) => boolean
  /** Throws an `ApiError` unless the principal may bring it from one state to the other; the platform always may. */
  readonly admit: (
    id: string,
    change: { readonly from: Json | null; readonly to: Json | null },
    principal: Principal,
    world: ChangeWorld,
  ) => Promise<void>
  /** After the commit of a change or its undoing: what of this process follows at once. */
  readonly follow?: (world: ChangeWorld, id: string) => Promise<void>
}
