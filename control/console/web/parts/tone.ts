/** How a state is coloured; the words beside it say the same. */
export type Tone = 'good' | 'warn' | 'bad' | 'plain'
