/** Calls: live ones, those that have ended, and one of each. They are loaded together. */
export { CallScreen } from '../../screens/call.tsx'
export { CallsScreen } from '../../screens/calls.tsx'
export { ChartsScreen } from '../../screens/charts.tsx'
export { HistoryScreen } from '../../screens/history.tsx'
