/**
 * A text that outlives the message it was cut from: V8 represents a part as a view that keeps the
 * whole alive. A part of a fresh sum is a flat copy.
 */
export const kept = (text: string): string => ` ${text}`.slice(1)
