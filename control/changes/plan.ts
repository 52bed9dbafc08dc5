/** A change before it is made: what it does, who is affected, and how to undo it. */
import type { Json } from './kinds.ts'
import type { ChangeKind } from './kinds.ts'

export interface Plan<O> {
  /** What is changed: a kind of the registry, and its id in that kind. */
  readonly target: { readonly kind: ChangeKind; readonly id: string }
  /**
   * The row to which the call's names lead, as `customer 7`, where the target does not say it: its id is new, or made of
   * names. What a person approves is of this row only.
   */
  readonly row?: string
  /**
   * Its state now and afterwards, as `restore` of the kind understands it, without secrets; null: it is not there.
   * Equal: nothing changes.
   */
  readonly before: Json | null
  readonly after: Json | null
  /**
   * One sentence in our own words. Stored and given texts are in it only as `quoted` of `clean-text.ts` makes them:
   * an agent and a person read it.
   */
  readonly effect: string
  /** Who is affected now, such as live calls or requests per hour. */
  readonly affected: Readonly<Record<string, number>>
  readonly undo: 'restores' | 'none'
  /** The tool's own fields of the answer of a dry run, and of a call that changes nothing. */
  readonly preview: O
  /**
   * Makes the change, and resolves with the tool's own fields. Where the target is a row, it runs in the transaction
   * that writes the entry: it waits for statements only, and may run again from its beginning.
   */
  readonly apply: () => Promise<O>
}
