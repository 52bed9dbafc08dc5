/** The state of calls as all others see it: to be read, never written. */
import type { Call, Leg } from './state.ts'

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Frozen<T[Key]> }
    : T

export type LiveCall = Frozen<Call>
export type LiveLeg = Frozen<Leg>
