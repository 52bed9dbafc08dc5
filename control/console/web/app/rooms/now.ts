/** The screens that an operator sees first: the first steps, later the state of everything. */
export { NowScreen } from '../../screens/now.tsx'
export { StartScreen } from '../../screens/start.tsx'
